"""Use of EC2 quotas by the platform's nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.report.figures import PoolSummary, QuotaNeed
from inference_blueprints.spec.types import Pool
from inference_catalog import InstanceType, system_nodes

_ON_DEMAND, _SPOT = "onDemand", "spot"
#: The quota key for each purchase. Instances of a reservation count as on-demand instances (Amazon EC2 User
#: Guide, "On-Demand Capacity Reservations"). The quota of Capacity Blocks is unknown here.
_COUNTED_AS = {"onDemand": _ON_DEMAND, "reservation": _ON_DEMAND, "spot": _SPOT}


@dataclass(frozen=True, slots=True)
class _Part:
    """vCPUs of one pool under one quota."""

    pool: str
    purchase: str
    quota: catalog.Quota | None
    vcpu_used: int
    vcpu_max: int


def quota_needs(
    pools: Sequence[Pool], summaries: Sequence[PoolSummary], *, system: bool
) -> tuple[QuotaNeed, ...]:
    """Return the quotas that all nodes need, including the platform's own.

    Parameters
    ----------
    summaries
        Figures of the same pools.
    system
        Whether the cluster has system nodes, as on EKS.

    Returns
    -------
    tuple of QuotaNeed
        Sorted by code. The maximum uses each pool's type with the most vCPUs. Capacity without a known quota
        has an empty code.
    """
    parts = [*_system_parts()] if system else []
    for pool, summary in zip(pools, summaries, strict=True):
        parts += _pool_parts(pool, summary)
    grouped: dict[tuple[str, str], list[_Part]] = {}
    for part in parts:
        grouped.setdefault((part.quota.name if part.quota else "", part.purchase), []).append(part)
    return tuple(
        QuotaNeed(
            code=code,
            name=same[0].quota.quota if same[0].quota else "",
            purchase=purchase,
            vcpu_used=sum(part.vcpu_used for part in same),
            vcpu_max=sum(part.vcpu_max for part in same),
            pools=tuple(part.pool for part in same),
        )
        for (code, purchase), same in sorted(grouped.items())
    )


def _pool_parts(pool: Pool, summary: PoolSummary) -> Iterator[_Part]:
    """Yield a pool's parts by quota.

    A pool that falls back from Spot counts twice, because either may serve all of it.
    """
    types = [catalog.instance_type(name) for name in pool.instance_types]
    reckoned = [each for each in types if each.name == summary.reckoned_instance_type]
    used = summary.nodes_used * reckoned[0].vcpu if reckoned else 0
    most = summary.nodes_max * max(each.vcpu for each in types)
    purchase = pool.purchase.chosen
    counted = _COUNTED_AS.get(purchase, purchase)
    yield _Part(pool.name, counted, _quota(types[0], counted), used, most)
    if pool.purchase.spot and pool.purchase.spot.on_demand_fallback:
        yield _Part(pool.name, _ON_DEMAND, _quota(types[0], _ON_DEMAND), 0, most)


def _system_parts() -> Iterator[_Part]:
    node = catalog.instance_type(system_nodes.INSTANCE_TYPE)
    largest = max(catalog.instance_type(name).vcpu for name in system_nodes.OVERFLOW_INSTANCE_TYPES)
    most = system_nodes.MAXIMUM_NODES * node.vcpu + system_nodes.OVERFLOW_MAXIMUM_NODES * largest
    yield _Part("system nodes", _ON_DEMAND, _quota(node, _ON_DEMAND), system_nodes.NODES * node.vcpu, most)


def _quota(instance_type: InstanceType, purchase: str) -> catalog.Quota | None:
    return next((each for each in catalog.quotas().values() if each.counts(instance_type, purchase)), None)
