"""What the capacity shift of a blueprint would free on the days of a trace, beside other ways (simulated)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inference_blueprints.measure.shift_simulation.traced_workers import TracedWorkers, learnt_bins
from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_contracts.errors import UserError
from inference_decisions.capacity_shift.shift_replay import (
    SharingOutcome,
    both_speeds,
    reactive,
    replay,
    replicas_only,
    schedule_floors,
)
from inference_decisions.capacity_shift.shift_settings import ShiftSettings

SharingWay = Literal["shift", "schedule only", "reactive only", "oracle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSharing:
    """What one way to share the elastic workers of a model came to."""

    model: str
    way: SharingWay
    pool_hours: float
    """Hours of all its elastic workers times their accelerators."""
    freed_hours: float
    """Those that batch had."""
    oracle_hours: float
    """Those that real time did not need."""
    unmet: float
    """Share of the demand that was not served, from 0 to 1."""

    @property
    def freed_percent(self) -> float:
        """Freed hours, in percent of the pool's."""
        return 100.0 * self.freed_hours / self.pool_hours

    @property
    def freed_of_oracle_percent(self) -> float:
        """Freed hours, in percent of the oracle's."""
        return 100.0 * self.freed_hours / self.oracle_hours if self.oracle_hours else 100.0


def demand_long_enough(rates: RequestRates, settings: ShiftSettings) -> None:
    """Check that a trace is longer than what is learnt from. Raises UserError if it is not."""
    seconds, hour = rates.end_seconds - rates.start_seconds, 3600.0
    if seconds < settings.learn_seconds + hour:
        raise UserError(
            f"got a trace of {seconds / hour:g} h; allowed are {settings.learn_seconds / hour + 1.0:g} h "
            "or more,"
            f" because the first {settings.learn_seconds / hour:g} h are only learnt from"
        )


def simulated_shift(traced: Sequence[TracedWorkers], settings: ShiftSettings) -> Iterator[ModelSharing]:
    """Yield what each way comes to for each model, in the order of the workers."""
    outcomes = [(each, _outcomes(each, settings)) for each in traced]
    for model in dict.fromkeys(each.moved.workers.model for each in traced):
        of_model = [(each, found) for each, found in outcomes if each.moved.workers.model == model]
        for way in of_model[0][1]:
            yield _summed(model, way, [(each, found[way]) for each, found in of_model])


def _outcomes(traced: TracedWorkers, settings: ShiftSettings) -> Mapping[SharingWay, SharingOutcome]:
    demand = traced.demand(learnt_bins(settings))
    replayed = replay(demand, settings)
    shared = traced.moved.places > 0
    shift = (
        both_speeds(demand, replayed, settings)
        if shared
        else replicas_only(demand, replayed.floors, settings)
    )
    return {
        "shift": shift,
        "schedule only": replicas_only(demand, schedule_floors(demand), settings),
        "reactive only": replicas_only(demand, reactive(demand), settings),
        "oracle": SharingOutcome(
            freed_hours=shift.oracle_hours,
            oracle_hours=shift.oracle_hours,
            pool_hours=shift.pool_hours,
            unmet=0.0,
        ),
    }


def _summed(
    model: str, way: SharingWay, found: Sequence[tuple[TracedWorkers, SharingOutcome]]
) -> ModelSharing:
    """Sum the workers of a model. A request needs every role of its release: the worst one counts."""
    unmet: dict[str, float] = {}
    requests: dict[str, float] = {}
    pool = freed = oracle = 0.0
    for traced, outcome in found:
        workers = traced.moved.workers
        unmet[workers.release] = max(unmet.get(workers.release, 0.0), outcome.unmet)
        requests[workers.release] = traced.moved.peak_requests_per_second
        accelerators = workers.most * workers.accelerators
        pool += accelerators * outcome.pool_hours
        freed += accelerators * outcome.freed_hours
        oracle += accelerators * outcome.oracle_hours
    missed = sum(unmet[release] * requests[release] for release in unmet)
    return ModelSharing(
        model=model,
        way=way,
        pool_hours=pool,
        freed_hours=freed,
        oracle_hours=oracle,
        unmet=missed / sum(requests.values()),
    )
