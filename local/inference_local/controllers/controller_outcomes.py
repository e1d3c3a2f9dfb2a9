"""What the controllers decided and did in a local run, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShiftRow:
    """One decision of the capacity shift about the workers."""

    seconds: float
    """Time since the start of the run."""
    floor: int
    """Least number of workers from now on."""
    lent: float
    """Share of the workers' capacity at their largest number that batch may have, from 0 to 1."""
    batch_places: int
    """Places of batch in the deployment: its share, in shards at once."""
    batch_accelerators: int
    """Accelerators of the pool that batch's own jobs may have: the quota of Kueue's queue."""
    reasons: tuple[str, ...]
    """Codes of the reasons."""


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Requests in flight at one moment."""

    seconds: float
    """Time since the start of the run."""
    interactive: float
    batch: float
    """`interactive`, `batch`: Those of each owner."""


@dataclass(frozen=True, slots=True)
class CapacityShiftOutcome:
    """How capacity moved between interactive requests and batch."""

    decisions: tuple[ShiftRow, ...]
    """Every decision, from the audit records in the table."""
    changes: int
    """Changes of floors, quotas and ceilings that were planned, without those of the same value."""
    failed_runs: int
    """Runs of the function that ended with an error."""
    batch_completed: int
    batch_lost: int
    """`batch_completed`, `batch_lost`: Requests of the batch job with an answer, and without."""
    batch_seconds: float
    """How long the job took."""
    ttft_p95_alone_ms: float | None
    ttft_p95_beside_ms: float | None
    """`ttft_p95_alone_ms`, `ttft_p95_beside_ms`: 95th percentile of the time to first token of interactive
    requests: in the first ramp without batch, and in the second beside it. None if nothing was answered."""
    ttft_p95_ratio: float | None
    """The second over the first."""
    is_timed: bool
    """Whether this machine kept the arrival times of the requests. If not, the ratio says nothing."""
    time_factor: float
    """How much faster the function's clock went."""
    most_workers: int
    """Largest number of workers."""
    workers: tuple[tuple[float, int], ...]
    """Ready workers over time: seconds and number."""
    load: tuple[LoadSample, ...]
    """Requests in flight over time."""


@dataclass(frozen=True, slots=True)
class GpuHealthOutcome:
    """What became of a worker that was made slow."""

    injected: int
    """Workers that were made slow."""
    found: int
    """Cases about them that were confirmed."""
    replaced: int
    """Nodes of them that were replaced by one that serves."""
    false_drains: int
    """Other nodes that were cordoned."""
    cut_streams: int
    """Streams that began and did not return every token, from the slowdown to the end."""
    seconds_to_serving: float | None
    """From the slowdown until the replacement was seen to serve. None if it was not."""
    speed: float
    """Speed of the slow worker, as a share of that of the others."""
    node: str
    replacement: str
    """`node`, `replacement`: Names of its node, and of the one that replaced it. Empty if none did."""
    replacement_requests: int
    """Requests that the replacement answered."""
    times: Mapping[str, float]
    """Seconds of the run at which the case came to each state, and ``slowed``."""
    runs: int
    failed_runs: int
    """`runs`, `failed_runs`: Runs of the function, and those that ended with an error."""
    streams: int
    """Streams from the slowdown to the end, all of whose tokens were counted."""
    time_factor: float
    """How much faster the function's clock went."""
    latencies: Mapping[str, tuple[tuple[float, float], ...]]
    """Time per output token in ms over time, by pod, as the function read it."""
    slow_pod: str
    """The pod that was made slow."""


@dataclass(frozen=True, slots=True)
class ControllerOutcomes:
    """What both controllers did in a run."""

    shift: CapacityShiftOutcome
    health: GpuHealthOutcome
