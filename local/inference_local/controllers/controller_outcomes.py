"""What the controllers decided and did in a local run, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShiftRow:
    """One decision of the capacity shift about the workers.

    Parameters
    ----------
    seconds
        Time since the start of the run.
    floor
        Least number of workers from now on.
    lent
        Share of the workers' capacity at their largest number that batch may have, from 0 to 1.
    batch_places
        Places of batch in the deployment: its share, in shards at once.
    batch_accelerators
        Accelerators of the pool that batch's own jobs may have: the quota of Kueue's queue.
    reasons
        Codes of the reasons.
    """

    seconds: float
    floor: int
    lent: float
    batch_places: int
    batch_accelerators: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Requests in flight at one moment.

    Parameters
    ----------
    seconds
        Time since the start of the run.
    interactive, batch
        Those of each owner.
    """

    seconds: float
    interactive: float
    batch: float


@dataclass(frozen=True, slots=True)
class CapacityShiftOutcome:
    """How capacity moved between interactive requests and batch.

    Parameters
    ----------
    decisions
        Every decision, from the audit records in the table.
    changes
        Changes of floors, quotas and ceilings that were planned, without those of the same value.
    failed_runs
        Runs of the function that ended with an error.
    batch_completed, batch_lost
        Requests of the batch job with an answer, and without.
    batch_seconds
        How long the job took.
    ttft_p95_alone_ms, ttft_p95_beside_ms
        95th percentile of the time to first token of interactive requests: in the first ramp without batch,
        and in the second beside it. None if nothing was answered.
    ttft_p95_ratio
        The second over the first.
    is_timed
        Whether this machine kept the arrival times of the requests. If not, the ratio says nothing.
    time_factor
        How much faster the function's clock went.
    most_workers
        Largest number of workers.
    workers
        Ready workers over time: seconds and number.
    load
        Requests in flight over time.
    """

    decisions: tuple[ShiftRow, ...]
    changes: int
    failed_runs: int
    batch_completed: int
    batch_lost: int
    batch_seconds: float
    ttft_p95_alone_ms: float | None
    ttft_p95_beside_ms: float | None
    ttft_p95_ratio: float | None
    is_timed: bool
    time_factor: float
    most_workers: int
    workers: tuple[tuple[float, int], ...]
    load: tuple[LoadSample, ...]


@dataclass(frozen=True, slots=True)
class GpuHealthOutcome:
    """What became of a worker that was made slow.

    Parameters
    ----------
    injected, found, replaced
        Workers that were made slow, cases about them that were confirmed, and nodes of them that were
        replaced by one that serves.
    false_drains
        Other nodes that were cordoned.
    cut_streams
        Streams that began and did not return every token, from the slowdown to the end.
    seconds_to_serving
        From the slowdown until the replacement was seen to serve. None if it was not.
    speed
        Speed of the slow worker, as a share of that of the others.
    node, replacement
        Names of its node, and of the one that replaced it. Empty if none did.
    replacement_requests
        Requests that the replacement answered.
    times
        Seconds of the run at which the case came to each state, and ``slowed``.
    runs, failed_runs
        Runs of the function, and those that ended with an error.
    streams
        Streams from the slowdown to the end, all of whose tokens were counted.
    time_factor
        How much faster the function's clock went.
    latencies
        Time per output token in ms over time, by pod, as the function read it.
    slow_pod
        The pod that was made slow.
    """

    injected: int
    found: int
    replaced: int
    false_drains: int
    cut_streams: int
    seconds_to_serving: float | None
    speed: float
    node: str
    replacement: str
    replacement_requests: int
    times: Mapping[str, float]
    runs: int
    failed_runs: int
    streams: int
    time_factor: float
    latencies: Mapping[str, tuple[tuple[float, float], ...]]
    slow_pod: str


@dataclass(frozen=True, slots=True)
class ControllerOutcomes:
    """What both controllers did in a run."""

    shift: CapacityShiftOutcome
    health: GpuHealthOutcome
