"""What a million tokens cost at the stated peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference_blueprints import catalog
from inference_blueprints.planning.cost import share_of
from inference_blueprints.planning.throughput import at_rate, prefill_ms
from inference_blueprints.planning.types import MemorySummary, PoolSummary, ProcessSummary, TokenPrice
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.traffic import deployment_requests_per_second, worker_requests_per_second

_SECONDS_AN_HOUR = 3600.0
_MILLION = 1e6
_MS = 1000.0


def token_price(
    roles: Sequence[tuple[ResolvedWorkers, MemorySummary]],
    pools: Sequence[PoolSummary],
    processes: Sequence[ProcessSummary],
) -> TokenPrice | None:
    """Return what a deployment's tokens cost; None without a latency profile.

    The peak of the model is shared by its deployments' accelerators, as the load balancer shares it. Where
    the workers carry less than the peak, the price is that of what they carry: of prefill and decode, the
    slower.

    Parameters
    ----------
    roles
        The deployment's workers, and how many requests one of each runs at once.
    pools, processes
        Of the plan, for its share of the nodes' price.
    """
    loads = [_load(resolved, memory) for resolved, memory in roles]
    known = [load for load in loads if load]
    if len(known) < len(loads):
        return None
    deciding = known[-1]  # decode, or all of it
    resolved, _ = roles[-1]
    workload = resolved.model.workload
    rate = min(load.requests_per_second for load in known)
    full = min(load.full_requests_per_second for load in known)
    _, usd = share_of({(resolved.model.name, resolved.deployment.name)}, pools, processes)
    both = workload.input_tokens + workload.output_tokens
    return TokenPrice(
        model=resolved.model.name,
        deployment=resolved.deployment.name,
        requests_per_second=rate,
        peak_requests_per_second=deployment_requests_per_second(resolved.model, resolved.deployment),
        concurrent_requests=deciding.concurrent_requests,
        time_per_output_token_ms=deciding.time_per_output_token_ms,
        usd_per_million_tokens=_per_million(usd, rate * both),
        usd_per_million_output_tokens=_per_million(usd, rate * workload.output_tokens),
        usd_per_million_tokens_full=_per_million(usd, full * both),
    )


@dataclass(frozen=True, slots=True)
class _Load:
    """What all workers of a role carry of the peak, and at their fullest."""

    requests_per_second: float
    full_requests_per_second: float
    concurrent_requests: int
    time_per_output_token_ms: float


def _load(resolved: ResolvedWorkers, memory: MemorySummary) -> _Load | None:
    """Return what the workers of a role carry; None without a latency profile or room for a request."""
    profile = catalog.latency_profile(
        resolved.shape.name, resolved.accelerator.name, resolved.tensor_parallel_size
    )
    if profile is None or memory.concurrent_requests < 1:
        return None
    workload, replicas = resolved.model.workload, resolved.workers.replicas
    each = worker_requests_per_second(resolved, replicas)
    if resolved.role == "prefill":
        most = _MS / prefill_ms(profile, workload)
        return _Load(min(each, most) * replicas, most * replicas, 1, 0.0)
    now, full = at_rate(
        profile, workload, each, memory.concurrent_requests, decodes_only=resolved.role == "decode"
    )
    return _Load(
        min(each, now.requests_per_second) * replicas,
        full.requests_per_second * replicas,
        now.concurrent_requests,
        now.time_per_output_token_ms,
    )


def _per_million(usd_per_hour: float | None, tokens_per_second: float) -> float | None:
    if usd_per_hour is None:
        return None
    return usd_per_hour / _SECONDS_AN_HOUR / tokens_per_second * _MILLION
