"""Price of a million tokens at the stated peak."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.report.figures import PoolSummary, ProcessSummary, TokenPrice
from inference_blueprints.report.pricing.deployment_share import share_of
from inference_blueprints.serving.estimates.traffic import deployment_requests_per_second
from inference_blueprints.serving.performance.role_capacity import role_capacity
from inference_blueprints.serving.resolved import ResolvedWorkers

_SECONDS_AN_HOUR = 3600.0
_MILLION = 1e6


def token_price(
    roles: Sequence[ResolvedWorkers],
    pools: Sequence[PoolSummary],
    processes: Sequence[ProcessSummary],
) -> TokenPrice | None:
    """Return the prices of a deployment's tokens; None without a latency profile.

    A load balancer divides the peak of the model among its deployments, in proportion to their accelerators.
    If the workers can serve less than that, the price is based on what they can serve: the slower of prefill
    and decode.

    Parameters
    ----------
    pools, processes
        Figures of the plan, for the deployment's share of the nodes' price.
    """
    capacities = [role_capacity(resolved) for resolved in roles]
    known = [capacity for capacity in capacities if capacity]
    if len(known) < len(capacities):
        return None
    writing = known[-1]  # decode, or both phases
    resolved = roles[-1]
    workload = resolved.model.workload
    rate = min(each.requests_per_second for each in known)
    full = min(each.full_requests_per_second for each in known)
    _, usd = share_of({(resolved.model.name, resolved.deployment.name)}, pools, processes)
    both = workload.input_tokens + workload.output_tokens
    return TokenPrice(
        model=resolved.model.name,
        deployment=resolved.deployment.name,
        requests_per_second=rate,
        peak_requests_per_second=deployment_requests_per_second(resolved.model, resolved.deployment),
        concurrent_requests=writing.concurrent_requests,
        time_per_output_token_ms=writing.time_per_output_token_ms,
        usd_per_million_tokens=_per_million(usd, rate * both),
        usd_per_million_output_tokens=_per_million(usd, rate * workload.output_tokens),
        usd_per_million_tokens_full=_per_million(usd, full * both),
    )


def _per_million(usd_per_hour: float | None, tokens_per_second: float) -> float | None:
    if usd_per_hour is None:
        return None
    return usd_per_hour / _SECONDS_AN_HOUR / tokens_per_second * _MILLION
