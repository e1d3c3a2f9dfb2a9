"""The pools: nodes, devices, operating systems and prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from inference_blueprints.report.figures import PoolSummary
from inference_blueprints.report.plan.cells import counted, few, usd, usd_at_least, usd_at_most
from inference_blueprints.report.plan.section import (
    Label,
    PlanBasis,
    PlanSection,
    PlanSummary,
    ShortLine,
    in_tables_only,
)
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.report.sizing.node_packing import PackedNode, workers_of_pool
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.nodes.ecs_capacity import EcsHosts, pool_capacities
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Pool, Spec
from inference_catalog import InstanceType
from inference_catalog.catalogue import shipped
from inference_catalog.ecs_hosts import ecs_host_image
from inference_catalog.operating_system import OperatingSystem
from inference_catalog.releases import Releases
from inference_contracts.records import dataclass

#: Prices in the catalogue have five decimals; sums are rounded back to them.
_PRICE_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class PriceNote:
    """Source of the prices, and costs that are not included."""

    region: str
    date: str
    source: str
    """`region`, `date`, `source`: Origin of the price table."""
    blueprint_region: str
    """Region of the platform."""
    not_included: tuple[str, ...]
    """Costs besides the pools' nodes."""
    rates: str = ""
    """Source and date of the user's own rates; empty without a rates file."""

    @property
    def note(self) -> str:
        """The source of the prices, and whether they are for the platform's region."""
        rates = f"Your rates take precedence: {self.rates}. " if self.rates else ""
        facts = f"{rates}On-demand prices of {self.region}, {self.date}, from {self.source}."
        if self.region == self.blueprint_region:
            return facts
        return f"{facts} The blueprint deploys to {self.blueprint_region}, where prices may differ."


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of all pools."""

    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    """`nodes_used`, `nodes_max`, `accelerators_used`, `accelerators_max`: Sums over the pools."""
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None
    """`usd_per_hour_used`, `usd_per_hour_max`: Sums over the pools whose price is known; None if no price is
    known."""
    without_used: tuple[str, ...]
    without_max: tuple[str, ...]
    """`without_used`, `without_max`: Pools whose price is unknown, left out of the respective sum."""
    usd_per_hour_used_at_most: float | None
    """The most that all used nodes can cost; None if a pool has no known bound."""


def summarise_pool(
    pool: Pool,
    plan: ServingPlan,
    releases: Releases,
    known: Prices,
    nodes: list[PackedNode],
    *,
    ecs_hosts: EcsHosts | None = None,
) -> PoolSummary:
    """Sum up one pool.

    plan: Whose workers it holds.
    releases: Releases of the nodes' operating systems.
    known: What is known of prices.
    nodes: Where those workers are placed.
    ecs_hosts: What runs its hosts on ECS. None on EKS.
    """
    types = known.types_of(pool)
    workers = workers_of_pool(plan, pool.name)
    accelerator = types[0].accelerator
    bounds = {kind.name: known.usd_per_hour_at_most(kind.name, pool.purchase) for kind in types}
    dearest = (
        None if None in bounds.values() else max(bound for bound in bounds.values() if bound is not None)
    )
    node_count = max(len(nodes), pool.nodes.min)
    reckoned = _reckoned_type(nodes, types) if node_count else None
    held = sum(worker.accelerator_count for worker in workers)
    system = shipped().operating_systems[plan.node_systems[pool.name]]
    return PoolSummary(
        name=pool.name,
        instance_types=tuple(kind.name for kind in types),
        purchase=pool.purchase.chosen,
        node_image=_host_image(ecs_hosts) if ecs_hosts else _node_image(pool, system, releases),
        root_volume_gib=_host_volume_gib(ecs_hosts) if ecs_hosts else system.root_volume_gib,
        is_managed_by_ecs=ecs_hosts == "managed",
        pairs_efa_with_gpus=system.pairs_efa_with_gpus and ecs_hosts is None,
        reckoned_instance_type=reckoned.name if reckoned else None,
        accelerator=accelerator.name if accelerator else None,
        nodes_used=node_count,
        nodes_max=pool.nodes.max,
        accelerators_used=held,
        accelerators_max=pool.nodes.max * max(kind.accelerator_count for kind in types),
        usd_per_hour_used=_times(node_count, reckoned.usd_per_hour if reckoned else 0.0),
        usd_per_hour_max=_times(pool.nodes.max, dearest),
        usd_per_hour_used_at_most=_times(node_count, bounds[reckoned.name] if reckoned else 0.0),
        nodes_idle=node_count - len(nodes),
        accelerators_idle=node_count * reckoned.accelerator_count - held if reckoned else 0,
    )


def _node_image(pool: Pool, system: OperatingSystem, releases: Releases) -> str:
    """Return the operating system and its release."""
    held = releases.held_pools.get(pool.name)
    return f"{system.ami_family} {(held or releases).release_of(system.name)}"


def _host_image(hosts: EcsHosts) -> str:
    """Return what the hosts of a pool on ECS boot."""
    return "chosen by ECS" if hosts == "managed" else f"ECS-optimized AL2023 {ecs_host_image().version}"


def _host_volume_gib(hosts: EcsHosts) -> int:
    """Return the space of the operating system on EBS. Managed Instances are only given space for tasks."""
    return 0 if hosts == "managed" else ecs_host_image().root_volume_gib


def _reckoned_type(nodes: list[PackedNode], types: list[InstanceType]) -> InstanceType:
    """Return the type that workers are placed on; kept nodes without workers are of the cheapest."""
    if nodes:
        return nodes[0].instance_type
    return min(types, key=lambda kind: math.inf if kind.usd_per_hour is None else kind.usd_per_hour)


def _times(nodes: int, usd_per_hour: float | None) -> float | None:
    return None if usd_per_hour is None else round(nodes * usd_per_hour, _PRICE_DECIMALS)


def _total(pools: tuple[PoolSummary, ...]) -> Totals:
    return Totals(
        nodes_used=sum(pool.nodes_used for pool in pools),
        nodes_max=sum(pool.nodes_max for pool in pools),
        accelerators_used=sum(pool.accelerators_used for pool in pools),
        accelerators_max=sum(pool.accelerators_max for pool in pools),
        usd_per_hour_used=_sum_of_known(pool.usd_per_hour_used for pool in pools),
        usd_per_hour_max=_sum_of_known(pool.usd_per_hour_max for pool in pools),
        without_used=tuple(pool.name for pool in pools if pool.usd_per_hour_used is None),
        without_max=tuple(pool.name for pool in pools if pool.usd_per_hour_max is None),
        usd_per_hour_used_at_most=_sum_of_all(pool.usd_per_hour_used_at_most for pool in pools),
    )


def _sum_of_all(prices: Iterable[float | None]) -> float | None:
    """Return a sum; None if a part is unknown."""
    values = list(prices)
    return None if None in values else _sum_of_known(values)


def _sum_of_known(prices: Iterable[float | None]) -> float | None:
    known = [price for price in prices if price is not None]
    return round(sum(known), _PRICE_DECIMALS) if known else None


def _prices(spec: Spec, known: Prices) -> PriceNote:
    table, rates = known.table, known.rates
    cluster = ("EKS control plane", "system nodes") if spec.cluster.eks else ("tasks on Fargate",)
    own_network = () if spec.network.existing else ("NAT gateways and VPC endpoints",)
    return PriceNote(
        region=table.region,
        date=table.date,
        source=table.source,
        blueprint_region=spec.environment.region,
        not_included=(
            *cluster,
            *own_network,
            "load balancer",
            "disks, buckets, logs and data transfer",
        ),
        rates=f"{rates.source}, {rates.date}" if rates else "",
    )


def pools(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Pools",
        ("pool", "instance types"),
        ("nodes of maximum", "devices of maximum", "USD per hour, used", "USD per hour, maximum"),
        (*map(_pool_row, summary[POOLS]), _total_row(summary[TOTALS])),
        tuple(_idle_nodes(summary[POOLS])),
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the largest numbers of nodes, and the devices that cost and do not work."""
    most = few((f"{each.nodes_max:,} nodes in pool {each.name}" for each in summary[POOLS]), ", ")
    yield Label.LIMITS, f"at most {most}"
    for note in _idle_nodes(summary[POOLS]):
        yield Label.WARNINGS, note


def _hourly(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the price of the nodes per hour."""
    totals = summary[TOTALS]
    used, most = totals.usd_per_hour_used, totals.usd_per_hour_max
    if used is None and most is None:
        return
    known = not (totals.without_used or totals.without_max)
    at_most = f", at most {usd(most)}" if known and most != used else ""
    yield Label.COST, f"nodes {_total_used(totals)} USD an hour{at_most}"


def _idle_nodes(pools: Sequence[PoolSummary]) -> Iterable[str]:
    """Say which devices `nodes.min` keeps running without a worker."""
    for pool in pools:
        if pool.nodes_idle:
            yield (
                f"Stranded: {pool.accelerators_idle:,} devices of pool {pool.name} hold no worker. "
                f"nodes.min keeps "
                f"{counted(pool.nodes_used, 'node')}, and the workers fill "
                f"{pool.nodes_used - pool.nodes_idle}."
            )


def _pool_row(pool: PoolSummary) -> tuple[str, ...]:
    purchase = "" if pool.purchase == "onDemand" else f" ({pool.purchase})"
    kind = f" {pool.accelerator}" if pool.accelerator else ""
    return (
        pool.name,
        ", ".join(pool.instance_types) + purchase,
        f"{pool.nodes_used:,} of {pool.nodes_max:,}",
        f"{pool.accelerators_used:,} of {pool.accelerators_max:,}{kind}",
        usd_at_most(pool.usd_per_hour_used, pool.usd_per_hour_used_at_most),
        usd(pool.usd_per_hour_max),
    )


def _total_row(totals: Totals) -> tuple[str, ...]:
    return (
        "total",
        "",
        f"{totals.nodes_used:,} of {totals.nodes_max:,}",
        f"{totals.accelerators_used:,} of {totals.accelerators_max:,}",
        _total_used(totals),
        usd_at_least(totals.usd_per_hour_max, is_partial=bool(totals.without_max)),
    )


def _total_used(totals: Totals) -> str:
    """Return the price of all used nodes, or a bound: a sum without a part is not shown as the whole."""
    if totals.without_used and totals.usd_per_hour_used_at_most is not None:
        return usd_at_most(None, totals.usd_per_hour_used_at_most)
    return usd_at_least(totals.usd_per_hour_used, is_partial=bool(totals.without_used))


def node_images(summary: PlanSummary) -> TextTable:
    paired = [pool.name for pool in summary[POOLS] if pool.pairs_efa_with_gpus]
    reason = (
        f"The workers on {', '.join(paired)} move KV cache over EFA and use a part of a node. On AL2023 they "
        "get the EFA interfaces beside their GPUs."
    )
    return TextTable(
        "Node images",
        ("pool",),
        ("operating system",),
        tuple((pool.name, pool.node_image) for pool in summary[POOLS]),
        (reason,) if paired else (),
    )


def _summarise(basis: PlanBasis) -> Iterator[PoolSummary]:
    """Yield the figures of each pool, in the blueprint's order."""
    hosts = {}
    if basis.spec.cluster.ecs:
        hosts = {each.pool: each.kind for each in pool_capacities(basis.blueprint, basis.plan)}
    for pool in basis.spec.pools:
        yield summarise_pool(
            pool,
            basis.plan,
            basis.blueprint.releases,
            basis.prices,
            basis.placed[pool.name],
            ecs_hosts=hosts.get(pool.name),
        )


POOLS = PlanSection("pools", lambda basis: tuple(_summarise(basis)), _in_short, (pools, node_images))
TOTALS = PlanSection("totals", lambda basis: _total(basis[POOLS]), _hourly)
PRICES = PlanSection(
    "prices", lambda basis: _prices(basis.spec, basis.prices), in_tables_only, computed=("note",)
)
