"""What a million tokens cost at the stated peak."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints import catalog
from inference_blueprints.planning.cost import share_of
from inference_blueprints.planning.throughput import at_rate
from inference_blueprints.planning.types import MemorySummary, PoolSummary, ProcessSummary, TokenPrice
from inference_blueprints.serving.resolved import ResolvedDeployment

_SECONDS_AN_HOUR = 3600.0
_MILLION = 1e6


def token_price(
    resolved: ResolvedDeployment,
    memory: MemorySummary,
    pools: Sequence[PoolSummary],
    processes: Sequence[ProcessSummary],
) -> TokenPrice | None:
    """Return what a deployment's tokens cost; None without a latency profile.

    The peak of the model is shared by its deployments' workers, as the load balancer shares it. Where the
    workers carry less than the peak, the price is that of what they carry.

    Parameters
    ----------
    resolved
        The deployment.
    memory
        How many requests one of its workers runs at once.
    pools, processes
        Of the plan, for its share of the nodes' price.
    """
    model, workers = resolved.model, resolved.deployment.aggregated
    profile = catalog.latency_profile(
        resolved.shape.name, resolved.accelerator.name, resolved.tensor_parallel_size
    )
    if profile is None or memory.concurrent_requests < 1:
        return None
    all_workers = sum(deployment.aggregated.replicas for deployment in model.deployments)
    each = model.workload.peak_requests_per_second / all_workers
    now, full = at_rate(profile, model.workload, each, memory.concurrent_requests)
    rate = min(each, now.requests_per_second) * workers.replicas
    _, usd = share_of({(model.name, resolved.deployment.name)}, pools, processes)
    output = model.workload.output_tokens
    both = model.workload.input_tokens + output
    return TokenPrice(
        model=model.name,
        deployment=resolved.deployment.name,
        requests_per_second=rate,
        peak_requests_per_second=each * workers.replicas,
        concurrent_requests=now.concurrent_requests,
        time_per_output_token_ms=now.time_per_output_token_ms,
        usd_per_million_tokens=_per_million(usd, rate * both),
        usd_per_million_output_tokens=_per_million(usd, rate * output),
        usd_per_million_tokens_full=_per_million(usd, full.requests_per_second * workers.replicas * both),
    )


def _per_million(usd_per_hour: float | None, tokens_per_second: float) -> float | None:
    if usd_per_hour is None:
        return None
    return usd_per_hour / _SECONDS_AN_HOUR / tokens_per_second * _MILLION
