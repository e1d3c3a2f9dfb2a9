"""How the workers of an elastic run followed the load, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """One decision, and what it saw.

    Parameters
    ----------
    seconds
        Time since the start of the run.
    role
        Release and role of the workers.
    workers, ready
        Workers that were wanted before, and those of them that every frontend listed.
    readings
        Answer of Prometheus to each trigger's query. None for no answer.
    desired
        Workers that are wanted from now on.
    reason
        Why, in a few words.
    """

    seconds: float
    role: str
    workers: int
    ready: int
    readings: Mapping[str, float | None]
    desired: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """The elastic workers at one moment.

    Parameters
    ----------
    seconds
        Time since the start of the run.
    wanted, ready
        Workers that are wanted, and those that every frontend lists.
    occupying
        Workers that hold accelerators: they start, serve or end.
    """

    seconds: float
    wanted: int
    ready: int
    occupying: int


@dataclass(frozen=True, slots=True)
class ScalingOutcome:
    """How the workers of all elastic roles followed the load.

    Parameters
    ----------
    workers_min, workers_max
        Smallest and largest number of ready workers during the run.
    decisions
        Every decision.
    cut_streams
        Streams that began and did not return every token.
    lost, requests
        Requests without a complete answer, with those streams, and all requests.
    clients
        How many sent requests at once, at most. None if a replay sent them.
    gpu_hours
        Accelerators that workers held, from the begin of their start to their end, times hours of the run.
    gpu_hours_at_most
        The same with the largest number of workers all the time.
    unused_gpus
        Accelerators of the largest number of workers that no worker held, on average, by model.
    time_factor
        By how much windows, periods and starts of workers are shortened. Requests are not.
    start_seconds
        Time from the decision for a worker to its process, by role, shortened.
    samples
        The workers over time.
    """

    workers_min: int
    workers_max: int
    decisions: tuple[ScalingDecision, ...]
    cut_streams: int
    lost: int
    requests: int
    clients: int | None
    gpu_hours: float
    gpu_hours_at_most: float
    unused_gpus: Mapping[str, float]
    time_factor: float
    start_seconds: Mapping[str, float]
    samples: tuple[WorkerSample, ...]
