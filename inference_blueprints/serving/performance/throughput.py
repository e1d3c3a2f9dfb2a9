"""Computes the throughput of a worker from the measured speeds of its latency profile (simulated).

A worker interleaves prefill and decode. With ``b`` concurrent requests of ``in`` and ``out`` tokens::

    prefill = time to first token of the part of a prompt that no other request shares
    step    = decode step at b * context tokens in the cache, context = in + out / 2
    b / rate = out * step + b * prefill       (Little's law; each request waits for all others' prefills)

A decode worker has no prefills to wait for. A prefill worker completes one prompt after the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from inference_blueprints.spec.types import Workload
from inference_catalog import LatencyProfile

_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Operation:
    """A worker at a given number of concurrent requests."""

    concurrent_requests: int
    requests_per_second: float
    """Completed requests per second."""
    time_per_output_token_ms: float
    """Mean time between two tokens of an answer, including the prefills of other requests."""


def operation(
    profile: LatencyProfile, workload: Workload, concurrent_requests: int, *, decodes_only: bool = False
) -> Operation:
    """Return the operation of a worker with this many concurrent requests.

    profile: Speeds of the model on the worker's devices.
    workload: Mean lengths of its requests.
    decodes_only: Whether other workers compute the prefills.
    """
    context = workload.input_tokens + workload.output_tokens / 2.0
    prefill = 0.0 if decodes_only else prefill_ms(profile, workload)
    rows = [_interpolate(profile.decode_context_length, row, context) for row in profile.decode_itl]
    step = _interpolate(profile.decode_active_kv_tokens, rows, concurrent_requests * context)
    request_ms = workload.output_tokens * step + concurrent_requests * prefill
    return Operation(
        concurrent_requests=concurrent_requests,
        requests_per_second=concurrent_requests * _MS / request_ms,
        time_per_output_token_ms=request_ms / workload.output_tokens,
    )


def prefill_ms(profile: LatencyProfile, workload: Workload) -> float:
    """Return the duration of a mean prompt's prefill, in milliseconds: only the unshared part is computed."""
    prompt = workload.input_tokens * (1.0 - workload.shared_prefix_ratio)
    return _interpolate(profile.prefill_isl, profile.prefill_ttft_ms, prompt)


def at_rate(
    profile: LatencyProfile,
    workload: Workload,
    requests_per_second: float,
    max_at_once: int,
    *,
    decodes_only: bool = False,
) -> tuple[Operation, Operation]:
    """Return the operation of a worker at a given rate, and at its highest load.

    requests_per_second: Requests per second that arrive at the worker.
    max_at_once: Most concurrent requests, at least 1.
    Returns: First with the fewest concurrent requests that achieve the rate (if none do, as the second);
        second at its highest rate.
    """
    all_operations = [
        operation(profile, workload, count, decodes_only=decodes_only) for count in range(1, max_at_once + 1)
    ]
    full = max(all_operations, key=lambda each: each.requests_per_second)
    enough = (each for each in all_operations if each.requests_per_second >= requests_per_second)
    return next(enough, full), full


def best_within(
    profile: LatencyProfile,
    workload: Workload,
    time_per_output_token_ms: float,
    max_at_once: int,
    *,
    decodes_only: bool = False,
) -> Operation:
    """Return the highest rate within a time per output token; the rate of one request if none qualifies.

    time_per_output_token_ms: Longest mean time between two tokens of an answer.
    max_at_once: Most concurrent requests, at least 1.
    """
    operations = [
        operation(profile, workload, count, decodes_only=decodes_only) for count in range(1, max_at_once + 1)
    ]
    within = [each for each in operations if each.time_per_output_token_ms <= time_per_output_token_ms]
    return max(within or operations[:1], key=lambda each: each.requests_per_second)


def _interpolate(axis: Sequence[float], values: Sequence[float], at: float) -> float:
    """Interpolate a table linearly, as the simulated engine does.

    Beyond its ends, extrapolate from its last two nodes.
    """
    upper = min(max(bisect_right(axis, at), 1), len(axis) - 1)
    low, high = axis[upper - 1], axis[upper]
    share = max(0.0, (at - low) / (high - low))
    return values[upper - 1] + share * (values[upper] - values[upper - 1])
