"""Summarises what large peaks need between clients and workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from inference_blueprints.report.figures import EdgeSummary
from inference_blueprints.report.pricing.edge_price import edge_summary
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.serving.estimates.frontend_size import frontend_size
from inference_blueprints.serving.resolved import ResolvedWorkers, common_zone
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.zones import platform_zones

#: Below this peak, connections and load balancer cost next to nothing.
LEAST_REQUESTS_PER_SECOND: Final = 1000.0


def summarise_edges(spec: Spec, roles: Iterable[ResolvedWorkers], prices: Prices) -> Iterator[EdgeSummary]:
    """Yield the edge of each model on Dynamo with a large peak.

    Parameters
    ----------
    spec
        The blueprint's section.
    roles
        Workers of every role of every deployment.
    prices
        Prices of instances.
    """
    workers = list(roles)
    zones = len(platform_zones(spec.environment))
    for model in spec.models:
        if model.stack.dynamo is None or model.workload.peak_requests_per_second < LEAST_REQUESTS_PER_SECOND:
            continue
        own = [each for each in workers if each.model.name == model.name]
        yield edge_summary(
            model,
            tuple(frontend_size(model, each) for each in model.deployments),
            rules=len(spec.models),
            zones=zones,
            is_zonal=all(
                common_zone([role for role in own if role.deployment.name == each.name])
                for each in model.deployments
            ),
            worker_usd_per_hour=worker_usd_per_hour(own, prices),
            prices=prices,
            region=spec.environment.region,
        )


def worker_usd_per_hour(roles: Iterable[ResolvedWorkers], prices: Prices) -> float | None:
    """Return the price per hour of a worker's share of its node, for the dearest role; None if unknown.

    Parameters
    ----------
    roles
        Workers of every role of a model.
    prices
        Prices of instances.
    """
    found = [_share(each, prices) for each in roles]
    known = [price for price in found if price is not None]
    return max(known) if known and len(known) == len(found) else None


def _share(workers: ResolvedWorkers, prices: Prices) -> float | None:
    kind = workers.instance_types[0]
    usd = prices.usd_per_hour(kind.name, workers.pool.purchase.chosen)
    if usd is None or not kind.accelerator_count:
        return None
    return usd * workers.workers.accelerators / kind.accelerator_count
