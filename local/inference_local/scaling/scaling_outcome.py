"""How the workers of an elastic run followed the load, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """One decision, and what it saw."""

    seconds: float
    """Time since the start of the run."""
    role: str
    """Release and role of the workers."""
    workers: int
    ready: int
    """`workers`, `ready`: Workers that were wanted before, and those of them that every frontend listed."""
    readings: Mapping[str, float | None]
    """Answer of Prometheus to each trigger's query. None for no answer."""
    desired: int
    """Workers that are wanted from now on."""
    reason: str
    """Why, in a few words."""


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """The elastic workers at one moment."""

    seconds: float
    """Time since the start of the run."""
    wanted: int
    ready: int
    """`wanted`, `ready`: Workers that are wanted, and those that every frontend lists."""
    occupying: int
    """Workers that hold accelerators: they start, serve or end."""


@dataclass(frozen=True, slots=True)
class ScalingOutcome:
    """How the workers of all elastic roles followed the load."""

    workers_min: int
    workers_max: int
    """`workers_min`, `workers_max`: Smallest and largest number of ready workers during the run."""
    decisions: tuple[ScalingDecision, ...]
    """Every decision."""
    cut_streams: int
    """Streams that began and did not return every token."""
    lost: int
    requests: int
    """`lost`, `requests`: Requests without a complete answer, with those streams, and all requests."""
    clients: int | None
    """How many sent requests at once, at most. None if a replay sent them."""
    gpu_hours: float
    """Accelerators that workers held, from the begin of their start to their end, times hours of the run."""
    gpu_hours_at_most: float
    """The same with the largest number of workers all the time."""
    unused_gpus: Mapping[str, float]
    """Accelerators of the largest number of workers that no worker held, on average, by model."""
    time_factor: float
    """By how much windows, periods and starts of workers are shortened. Requests are not."""
    start_seconds: Mapping[str, float]
    """Time from the decision for a worker to its process, by role, shortened."""
    samples: tuple[WorkerSample, ...]
    """The workers over time."""
