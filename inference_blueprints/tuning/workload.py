"""What is asked of a configuration and what it has to keep: the stated workload, or a recorded trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol

from inference_blueprints.serving.workload import decode_seconds, prefill_seconds
from inference_blueprints.simulation.highest_rate import Limits
from inference_blueprints.simulation.offline_replay import (
    RecordedRequest,
    ReplayResult,
    SyntheticLoad,
    replay_recorded,
    replay_synthetic,
)
from inference_blueprints.simulation.workers import SimulatedWorkers
from inference_blueprints.spec.types import Model, Workload

Router = Literal["kv_router", "round_robin"]

#: Seconds of arrivals in a replay of the stated workload, within these numbers of requests.
_SECONDS = 60.0
_FEWEST_REQUESTS, _MOST_REQUESTS = 200, 2000
#: Random arrivals differ; the objectives are to be kept with each of these.
_SEEDS = (0, 1, 2)
_MS = 1000.0


class Demand(Protocol):
    """What is asked, and how often it is to be replayed."""

    @property
    def means(self) -> Workload:
        """Mean lengths, the sharing of prefixes, and the rate of requests."""

    @property
    def seconds(self) -> float:
        """How long requests arrive in a replay."""

    @property
    def seeds(self) -> Sequence[int]:
        """One for each replay that a configuration has to pass."""

    @property
    def content(self) -> dict[str, Any]:
        """All that a replay depends on, as JSON values."""

    def replay(self, workers: Sequence[SimulatedWorkers], router: Router, seed: int) -> ReplayResult:
        """Replay it against workers."""


@dataclass(frozen=True, slots=True)
class StatedWorkload:
    """The `workload` section: requests that are alike, at random times, at the stated peak.

    Parameters
    ----------
    means
        The section.
    """

    means: Workload

    @property
    def requests(self) -> int:
        """Requests of a replay."""
        rate = self.means.peak_requests_per_second
        return min(_MOST_REQUESTS, max(_FEWEST_REQUESTS, round(rate * _SECONDS)))

    @property
    def seconds(self) -> float:
        """How long requests arrive in a replay."""
        return self.requests / self.means.peak_requests_per_second

    @property
    def seeds(self) -> Sequence[int]:
        """One for each replay that a configuration has to pass."""
        return _SEEDS

    @property
    def content(self) -> dict[str, Any]:
        """All that a replay depends on, as JSON values."""
        return {"workload": self.means.model_dump(mode="json"), "requests": self.requests}

    def replay(self, workers: Sequence[SimulatedWorkers], router: Router, seed: int) -> ReplayResult:
        """Replay it against workers.

        Parameters
        ----------
        workers, router, seed
            As for `replay_synthetic`.
        """
        load = SyntheticLoad(
            self.means.input_tokens, self.means.output_tokens, self.means.shared_prefix_ratio
        )
        rate = self.means.peak_requests_per_second
        return replay_synthetic(workers, load, rate, self.requests, router=router, seed=seed)


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """Recorded requests, at their own times.

    Parameters
    ----------
    means
        Their mean lengths, sharing and rate.
    requests
        In the order of arrival.
    block_tokens
        Tokens of a block of a prompt.
    """

    means: Workload
    requests: tuple[RecordedRequest, ...]
    block_tokens: int

    @property
    def seconds(self) -> float:
        """How long requests arrive in a replay."""
        return len(self.requests) / self.means.peak_requests_per_second

    @property
    def seeds(self) -> Sequence[int]:
        """One for each replay that a configuration has to pass: their times are as they are."""
        return _SEEDS[:1]

    @property
    def content(self) -> dict[str, Any]:
        """All that a replay depends on, as JSON values."""
        return {"blockTokens": self.block_tokens, "requests": [asdict(request) for request in self.requests]}

    def replay(self, workers: Sequence[SimulatedWorkers], router: Router, seed: int) -> ReplayResult:  # noqa: ARG002
        """Replay it against workers.

        Parameters
        ----------
        workers, router
            As for `replay_recorded`.
        seed
            Without a meaning here.
        """
        return replay_recorded(workers, self.requests, self.block_tokens, router=router)


def router_of(model: Model) -> Router:
    """Return how the blueprint's routing is called by the replay.

    Parameters
    ----------
    model
        The blueprint's section.
    """
    return "kv_router" if model.routing.chosen == "kvAware" else "round_robin"


def limits_of(model: Model) -> Limits:
    """Return the objectives to keep; where the blueprint states none, those that its checks assume.

    Parameters
    ----------
    model
        The blueprint's section.
    """
    return Limits(
        time_to_first_token_p90_ms=prefill_seconds(model.objectives) * _MS,
        time_per_output_token_p90_ms=decode_seconds(model.workload, model.objectives)
        * _MS
        / model.workload.output_tokens,
    )


def busiest(requests: Sequence[RecordedRequest]) -> tuple[RecordedRequest, ...]:
    """Return the part of a trace that is replayed: all, or those 2,000 in a row that came fastest.

    Parameters
    ----------
    requests
        In the order of arrival.
    """
    number = min(_MOST_REQUESTS, len(requests))
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

    Parameters
    ----------
    requests
        In the order of arrival; not all of one time.
    block_tokens
        Tokens of a block of a prompt.
    """
    tokens = sum(request.input_tokens for request in requests)
    seen: set[int] = set()
    shared = 0
    for request in requests:
        known = sum(1 for identity in request.block_ids if identity in seen)
        shared += min(known * block_tokens, request.input_tokens - 1)
        seen.update(request.block_ids)
    # Their times span one gap fewer than there are requests.
    seconds = requests[-1].arrival_seconds * len(requests) / max(1, len(requests) - 1)
    means = Workload(
        input_tokens=round(tokens / len(requests)),
        output_tokens=round(sum(request.output_tokens for request in requests) / len(requests)),
        shared_prefix_ratio=shared / tokens,
        peak_requests_per_second=len(requests) / seconds,
    )
    return RecordedWorkload(means, tuple(requests), block_tokens)
