"""Predicts when jobs end: repeats the allotment of places until all of them have ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from batch.scheduling.allotment import WaitingOrRunning, allot

#: Shortest step of a prediction. The places of a job that ends within a step become free at the end of it.
_MIN_STEP_SECONDS: Final = 60.0
#: Shards that are left by rounding.
_NOTHING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class ForecastJob:
    """A job whose end is predicted."""

    wanted: WaitingOrRunning
    """The job as `allot` takes it."""
    model_seconds: float
    """Planned seconds per shard if it has the whole model."""
    shards_per_second: float | None = None
    """Measured rate of one of its places; None if the job was not measured yet."""


def expected_ends(
    jobs: Iterable[ForecastJob], places: int, *, speed: float, now: float, maximum: Mapping[str, int]
) -> dict[str, float]:
    """Return the time at which each job is expected to end, in seconds since 1970.

    Places are allotted by the rules of the scheduler (`batch.scheduling.allotment`). A measured job keeps the
    rate of its places. Other jobs share what is left of the model's speed. If the rates together exceed the
    speed, all are lower in proportion. So a single shard may use the whole model, as long as nothing was
    measured.

    A job that is unfinished at its deadline is stopped then and frees its places. Its time is the end that it
    would have had at that rate, or with all places if it had none.

    jobs: All jobs of one model with unfinished shards.
    places, maximum: As in `allot`.
    speed: Speed of the model (`batch.scheduling.measuring`).
    """
    open_jobs = {each.wanted.job: each for each in jobs if each.wanted.shards > 0}
    left = {name: float(each.wanted.shards) for name, each in open_jobs.items()}
    ends: dict[str, float] = {}
    at = now
    while open_jobs:
        wanted = [
            replace(each.wanted, shards=math.ceil(left[name] - _NOTHING)) for name, each in open_jobs.items()
        ]
        allotted = allot(wanted, places, now=at, maximum=maximum)
        rates = _rates(open_jobs, allotted, speed)
        step = _step(open_jobs, left, rates, at)
        for name, each in list(open_jobs.items()):
            alone = left[name] * each.model_seconds / speed
            needed = left[name] / rates[name] if rates[name] else alone
            left[name] -= rates[name] * step
            if left[name] <= _NOTHING or each.wanted.deadline <= at + step:
                ends[name] = at + needed if rates[name] else max(each.wanted.deadline, at) + needed
                del open_jobs[name]
            elif rates[name]:
                open_jobs[name] = replace(each, wanted=replace(each.wanted, is_running=True))
        at += step
    return ends


def _rates(
    open_jobs: Mapping[str, ForecastJob], allotted: Mapping[str, int], speed: float
) -> dict[str, float]:
    """Return the shards per second of each job."""
    measured = {
        name: allotted[name] * each.shards_per_second
        for name, each in open_jobs.items()
        if each.shards_per_second is not None
    }
    new = sum(allotted[name] for name in open_jobs if name not in measured)
    used = sum(rate * open_jobs[name].model_seconds for name, rate in measured.items())
    total = sum(allotted.values())
    # Jobs that were not measured get at least the share of their places.
    free = max(speed - used, speed * new / total) if total else 0.0
    rates = dict(measured)
    for name, each in open_jobs.items():
        if name not in measured:
            share = allotted[name] / new if new else 0.0
            rates[name] = free * share / max(each.model_seconds, _NOTHING)
    load = sum(rate * open_jobs[name].model_seconds for name, rate in rates.items())
    return {name: rate * min(1.0, speed / load) if load else 0.0 for name, rate in rates.items()}


def _step(
    open_jobs: Mapping[str, ForecastJob], left: Mapping[str, float], rates: Mapping[str, float], at: float
) -> float:
    """Return the time until the next job ends or reaches its deadline. Each step ends at least one job."""
    times = [left[name] / rates[name] for name in open_jobs if rates[name]]
    times += [each.wanted.deadline - at for each in open_jobs.values()]
    return max(min(times), _MIN_STEP_SECONDS)
