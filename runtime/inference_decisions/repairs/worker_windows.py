"""What workers did in the last minutes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

Numbers = NDArray[numpy.float64]
Names = NDArray[numpy.str_]
#: Names, or numbers that stand for them.
Labels = NDArray[numpy.generic]
Codes = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerWindows:
    """The newest windows of the workers of one cell.

    An array of labels has one element per worker, a matrix one row per window, oldest first, and one column
    per worker. NaN is missing: the worker did not report, or did nothing. A window is as long as the time
    between two decisions (60 s).
    """

    worker: Labels
    """Names of the workers (pods)."""
    node: Labels
    rack: Labels
    pool: Labels
    """`node`, `rack`, `pool`: Where each worker runs. A rack of the empty string is unknown."""
    peers: Labels
    """Name of what has to be equal for workers to be comparable: model release and its revision, role and
    type of GPU (`peer_name`). A new revision is never compared with the old one."""
    age: Numbers
    """Seconds since each worker started, at the end of the newest window."""
    load: Numbers
    """Tokens per second that the worker processed, of prompts and answers. Work that was done and not
    requests in flight: a slow worker holds more requests, and would leave its peers' band."""
    latency: Numbers
    """Seconds per token: between output tokens, or of prompt tokens for a prefill worker."""
    requests: Numbers
    """Requests that ended."""
    failed: Numbers
    failed_transfers: Numbers
    empty: Numbers
    """`failed`, `failed_transfers`, `empty`: Requests that failed, KV transfers that failed, and answers
    without a token. NaN if the engine has no such count."""


def peer_name(*, release: str, revision: str, role: str, gpu: str) -> str:
    """Return what has to be equal for two workers to be compared.

    release: Name of the Helm release.
    revision: What changes with each rollout, such as the pod's template hash.
    role: Role of the worker in the release.
    gpu: Type of its GPU.
    """
    return "/".join((release, revision, role, gpu))
