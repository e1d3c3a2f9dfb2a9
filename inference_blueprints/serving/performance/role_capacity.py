"""Computes the capacity of the workers of a role from the model's latency profile (simulated)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.estimates.request_estimates import unique_tokens
from inference_blueprints.serving.estimates.traffic import worker_requests_per_second
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.performance.throughput import at_rate, best_within, prefill_ms
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import Workload
from inference_catalog import LatencyProfile

_MS = 1000.0


@dataclass(frozen=True, slots=True)
class RoleCapacity:
    """Capacity of all workers of a role."""

    requests_per_second: float
    """Completed requests per second at the stated peak."""
    full_requests_per_second: float
    """Completed requests per second at the highest load, regardless of latency."""
    objective_requests_per_second: float
    """Completed requests per second within the objective for the time per output token; at the highest load
    without an objective."""
    concurrent_requests: int
    """Concurrent requests per worker at the stated peak."""
    time_per_output_token_ms: float
    """Mean time between two tokens of an answer at the stated peak; 0 for prefill workers."""


#: Returns the latency profile of a model, accelerator, tensor parallel size and engine; None if there is
#: none.
ProfileFinder = Callable[[str, str, int, str], LatencyProfile | None]


def speeds(resolved: ResolvedWorkers, find: ProfileFinder = catalog.latency_profile) -> LatencyProfile | None:
    """Return the latency profile of workers; None if there is none, or if the model writes no text.

    All profiles are of answers, and use only tensor parallelism.

    find: Source of profiles; the catalogue by default.
    """
    size = resolved.tensor_parallel_size
    writes = resolved.model.task == "generate" and resolved.model.workload.output_tokens > 0
    if not writes or resolved.workers.accelerators != size or resolved.workers.expert_parallel:
        return None
    return find(resolved.device_shape.name, resolved.accelerator.name, size, resolved.model.engine.chosen)


def concurrent_requests(workload: Workload, sizing: Sizing) -> int:
    """Return the number of mean requests that a rank runs at once, with one copy of their shared prefix."""
    if workload.images:
        return sizing.max_num_seqs
    shared_tokens = workload.input_tokens * workload.shared_prefix_ratio
    by_memory = int((sizing.kv_tokens - shared_tokens) // unique_tokens(workload))
    return max(0, min(by_memory, sizing.max_num_seqs))


def role_capacity(
    resolved: ResolvedWorkers, find: ProfileFinder = catalog.latency_profile
) -> RoleCapacity | None:
    """Return the capacity of the workers of a role.

    find: Source of profiles; the catalogue by default.
    Returns: None without a latency profile, or without memory for one request.
    """
    profile = speeds(resolved, find)
    workload, replicas = resolved.model.workload, resolved.workers.maximum
    at_once = concurrent_requests(workload, worker_sizing(resolved))
    if profile is None or at_once < 1:
        return None
    each = worker_requests_per_second(resolved, replicas)
    if resolved.role == "prefill":
        maximum = _MS / prefill_ms(profile, workload)
        return RoleCapacity(min(each, maximum) * replicas, maximum * replicas, maximum * replicas, 1, 0.0)
    apart = resolved.role == "decode"
    now, full = at_rate(profile, workload, each, at_once, decodes_only=apart)
    limit = resolved.model.objectives.time_per_output_token_p90_ms
    within = best_within(profile, workload, limit, at_once, decodes_only=apart) if limit else full
    return RoleCapacity(
        min(each, now.requests_per_second) * replicas,
        full.requests_per_second * replicas,
        within.requests_per_second * replicas,
        now.concurrent_requests,
        now.time_per_output_token_ms,
    )
