"""The replayed requests, from the stated workload or a recorded trace, and the objectives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, Protocol

from inference_blueprints.measure.simulation.offline_replay import (
    RecordedRequest,
    SimulatedReplay,
    SyntheticLoad,
    replay_recorded,
    replay_synthetic,
)
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers
from inference_blueprints.serving.estimates.request_estimates import (
    prefill_seconds,
    request_seconds,
    time_per_output_token_seconds,
)
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.types import WHOLE_REQUEST, LatencyKind, Model, Objective, Workload
from inference_contracts.errors import UserError
from inference_contracts.number_text import number
from inference_contracts.records import dataclass

Router = Literal["kv_router", "round_robin"]

#: Seconds of arrivals in the first replay of the stated workload, within these numbers of requests.
_SECONDS = 60.0
_FEWEST_REQUESTS, _MAX_REQUESTS = 200, 2000
#: Replays that a configuration has to pass at the least: random arrivals differ, and the router's choices.
_FEWEST_SERIES = 3
#: Workers fill up for about as long as an answer takes. The last replay lasts so many answers, so that their
#: steady state is in it, within this number of requests.
ANSWERS = 6.0
_LAST_REQUESTS = 10_000
#: As in the blueprint's `workload`.
_MAX_A_SECOND = 1_000_000
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Series:
    """Requests of one replay."""

    seed: int
    requests: int


class Demand(Protocol):
    """The requests and the number of replays."""

    @property
    def means(self) -> Workload:
        """Mean lengths, the sharing of prefixes, and the rate of requests."""

    @property
    def seconds(self) -> float:
        """How long requests arrive in a replay."""

    @property
    def series(self) -> Sequence[Series]:
        """One for each replay that a configuration has to pass, none shorter than the one before."""

    @property
    def longest(self) -> Workload:
        """Lengths of the longest prompt and the longest answer, of which nothing is shared in a trace."""

    @property
    def content(self) -> dict[str, Any]:
        """All that a replay depends on, as JSON values."""

    def replay(self, workers: Sequence[SimulatedWorkers], router: Router, series: Series) -> SimulatedReplay:
        """Replay it against workers."""


@dataclass(frozen=True, slots=True)
class StatedWorkload:
    """The `workload` section: requests that are alike, at random times, at the stated peak."""

    means: Workload
    answer_seconds: float = 0.0
    """How long a request may take within the objectives."""

    @property
    def seconds(self) -> float:
        """How long requests arrive in the longest replay."""
        return self.series[-1].requests / self.means.peak_requests_per_second

    @property
    def series(self) -> Sequence[Series]:
        """One for each replay that a configuration has to pass, none shorter than the one before."""
        rate = self.means.peak_requests_per_second
        first = min(_MAX_REQUESTS, max(_FEWEST_REQUESTS, round(rate * _SECONDS)))
        last = min(_LAST_REQUESTS, math.ceil(rate * ANSWERS * self.answer_seconds))
        return _series(first, max(first, last))

    @property
    def longest(self) -> Workload:
        """Lengths of the longest prompt and the longest answer: all are alike."""
        return self.means

    @property
    def content(self) -> dict[str, Any]:
        """All that a replay depends on, as JSON values."""
        return {"workload": self.means.model_dump(mode="json")}

    def replay(self, workers: Sequence[SimulatedWorkers], router: Router, series: Series) -> SimulatedReplay:
        """Replay it against workers.

        series: How many requests, and the seed of their times.
        """
        load = SyntheticLoad(
            self.means.input_tokens, self.means.output_tokens, self.means.shared_prefix_ratio
        )
        rate = self.means.peak_requests_per_second
        return replay_synthetic(workers, load, rate, series.requests, router=router, seed=series.seed)


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """Recorded requests, at their own times."""

    means: Workload
    """Their mean lengths, sharing and rate."""
    requests: tuple[RecordedRequest, ...]
    """In the order of arrival."""
    block_tokens: int
    """Tokens of a block of a prompt."""

    @property
    def seconds(self) -> float:
        """How long requests arrive in the longest replay."""
        return len(self.requests) / self.means.peak_requests_per_second

    @property
    def series(self) -> Sequence[Series]:
        """One for each replay that a configuration has to pass, none shorter than the one before.

        Times are as they are; but a KV-aware router breaks ties at random, so that replays differ.
        """
        return _series(min(_MAX_REQUESTS, len(self.requests)), len(self.requests))

    @property
    def longest(self) -> Workload:
        """Lengths of the longest prompt and the longest answer; the first finds nothing in a cache."""
        lengths = {
            "input_tokens": max(request.input_tokens for request in self.requests),
            "output_tokens": max(request.output_tokens for request in self.requests),
            "shared_prefix_ratio": 0.0,
        }
        return self.means.model_copy(update=lengths)

    @property
    def content(self) -> dict[str, Any]:
        """All that a replay depends on, as JSON values."""
        return {"blockTokens": self.block_tokens, "requests": [asdict(request) for request in self.requests]}

    def replay(self, workers: Sequence[SimulatedWorkers], router: Router, series: Series) -> SimulatedReplay:
        """Replay it against workers.

        series: How many requests: those that came fastest.
        """
        part = busiest(self.requests, series.requests)
        return replay_recorded(workers, part, self.block_tokens, router=router)


def _series(first: int, last: int) -> tuple[Series, ...]:
    """Return series from the first number of requests to the last, each twice as long as the one before."""
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(min(2 * sizes[-1], last))
    sizes += [last] * (_FEWEST_SERIES - len(sizes))
    return tuple(Series(seed, requests) for seed, requests in enumerate(sizes))


def router_of(model: Model) -> Router:
    """Return the replay's name of the blueprint's routing."""
    return "kv_router" if model.routing.chosen == "kvAware" else "round_robin"


def objectives_of(model: Model) -> tuple[Objective, ...]:
    """Return the stated objectives, with the deadline of real time, and the defaults of the checks.

    A latency without an objective has the default, unless the file has an objective for whole requests.
    """
    stated = model.objectives.stated
    limits: dict[LatencyKind, float] = {
        "timeToFirstTokenMs": prefill_seconds(model.objectives) * _MS,
        "timePerOutputTokenMs": time_per_output_token_seconds(model.objectives) * _MS,
    }
    kinds = {each.kind for each in stated}
    assumed = [] if WHOLE_REQUEST in kinds else [kind for kind in limits if kind not in kinds]
    defaults = (Objective(kind, 90.0, limits[kind], ()) for kind in assumed)
    return tuple(sorted((*model.stated_objectives, *defaults)))


def answer_seconds(model: Model, means: Workload) -> float:
    """Return the maximum duration of a mean request within the objectives."""
    return request_seconds(means, model.objectives)


def long_enough(requests: Sequence[RecordedRequest], model: Model) -> tuple[RecordedRequest, ...]:
    """Return the busiest part of a trace that is long enough to show the workers' steady state.

    requests: In the order of arrival.
    model: Whose objectives say how long answers may take.
    """
    number = _MAX_REQUESTS
    while True:
        part = busiest(requests, number)
        output = math.ceil(sum(request.output_tokens for request in part) / len(part))
        means = own_means(model).model_copy(update={"output_tokens": output})
        wanted = ANSWERS * answer_seconds(model, means)
        if part[-1].arrival_seconds >= wanted or number >= min(_LAST_REQUESTS, len(requests)):
            return part
        number = min(2 * number, _LAST_REQUESTS)


def busiest(requests: Sequence[RecordedRequest], number: int = _MAX_REQUESTS) -> tuple[RecordedRequest, ...]:
    """Return a part of a trace: all, or so many in a row that came fastest.

    number: Maximum number.
    """
    number = min(number, len(requests))
    starts = range(len(requests) - number + 1)
    start = min(
        starts, key=lambda at: requests[at + number - 1].arrival_seconds - requests[at].arrival_seconds
    )
    first = requests[start].arrival_seconds
    return tuple(
        replace(request, arrival_seconds=request.arrival_seconds - first)
        for request in requests[start : start + number]
    )


def recorded_workload(requests: Sequence[RecordedRequest], block_tokens: int) -> RecordedWorkload:
    """Return recorded requests with their means.

    requests: In the order of arrival; not all of one time.
    block_tokens: Tokens of a block of a prompt.
    Raises UserError if they arrive faster than a blueprint may state.
    """
    # Their times span one gap fewer than there are requests.
    seconds = requests[-1].arrival_seconds * len(requests) / max(1, len(requests) - 1)
    if seconds * _MAX_A_SECOND < len(requests):
        raise UserError(
            f"{len(requests):,} requests of the trace in a row arrive within {number(seconds)} seconds; at "
            f"most {_MAX_A_SECOND:,} per second are allowed; check the unit of its times"
        )
    tokens = sum(request.input_tokens for request in requests)
    seen: set[int] = set()
    shared = 0
    for request in requests:
        known = sum(1 for identity in request.block_ids if identity in seen)
        shared += min(known * block_tokens, request.input_tokens - 1)
        seen.update(request.block_ids)
    means = Workload(
        input_tokens=round(tokens / len(requests)),
        output_tokens=round(sum(request.output_tokens for request in requests) / len(requests)),
        shared_prefix_ratio=shared / tokens,
        peak_requests_per_second=len(requests) / seconds,
    )
    return RecordedWorkload(means, tuple(requests), block_tokens)
