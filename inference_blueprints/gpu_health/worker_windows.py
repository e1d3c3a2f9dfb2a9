"""What workers did in the last minutes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

Numbers = NDArray[numpy.float64]
Names = NDArray[numpy.str_]
Codes = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerWindows:
    """The newest windows of the workers of one cell.

    An array of names has one element per worker, a matrix one row per window, oldest first, and one column
    per worker. NaN is missing: the worker did not report, or did nothing. A window is as long as the time
    between two decisions (60 s).

    Parameters
    ----------
    worker
        Names of the workers (pods).
    node, rack, pool
        Where each worker runs. A rack of the empty string is unknown.
    peers
        Name of what has to be equal for workers to be comparable: model release and its revision, role and
        type of GPU (`peer_name`). A new revision is never compared with the old one.
    load
        Tokens per second that the worker processed, of prompts and answers. Work that was done and not
        requests in flight: a slow worker holds more requests, and would leave its peers' band.
    latency
        Seconds per token: between output tokens, or of prompt tokens for a prefill worker.
    requests
        Requests that ended.
    failed, failed_transfers, empty
        Requests that failed, KV transfers that failed, and answers without a token. NaN if the engine has
        no such count.
    """

    worker: Names
    node: Names
    rack: Names
    pool: Names
    peers: Names
    load: Numbers
    latency: Numbers
    requests: Numbers
    failed: Numbers
    failed_transfers: Numbers
    empty: Numbers


def peer_name(*, release: str, revision: str, role: str, gpu: str) -> str:
    """Return what has to be equal for two workers to be compared.

    Parameters
    ----------
    release
        Name of the Helm release.
    revision
        What changes with each rollout, such as the pod's template hash.
    role
        Role of the worker in the release.
    gpu
        Type of its GPU.
    """
    return "/".join((release, revision, role, gpu))


@dataclass(frozen=True, slots=True)
class Shift:
    """Many workers moved together: a finding of its own, and no verdict on single workers.

    Parameters
    ----------
    unit
        What moved: ``rack``, ``peers`` (a release or load band) or ``pool``.
    name
        Its name.
    workers
        Workers that moved.
    slower
        Their median slowdown against their peers, as a share. Zero if they moved in failures.
    """

    unit: str
    name: str
    workers: int
    slower: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What `detect` found. Arrays with one element per worker, in the order of the windows.

    Parameters
    ----------
    suspicious
        Whether the worker alone is worse than its peers.
    kind
        ``slow``, ``failed``, ``failed_transfers``, ``empty``, or the empty string.
    slower
        Median slowdown against the peers in the windows looked at, as a share. NaN if it is unknown.
    score
        Distance from the peers in units of their spread, in the newest window with metrics.
    decidable
        Whether the newest window could be judged: enough peers, requests, and comparable load.
    suppressed_by
        Name of the unit that moved together, or the empty string.
    shifts
        What moved together.
    """

    suspicious: Flags
    kind: Names
    slower: Numbers
    score: Numbers
    decidable: Flags
    suppressed_by: Names
    shifts: tuple[Shift, ...]
