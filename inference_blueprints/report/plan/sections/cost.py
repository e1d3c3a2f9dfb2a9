"""Price of a month of the whole platform, with its assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.report.figures import CostItem, PoolSummary
from inference_blueprints.report.plan.cells import few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.batch_workers import BATCH_WORKERS, BatchWorkersSummary
from inference_blueprints.report.plan.sections.kafka import KAFKA, KafkaSummary
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.sections.scaling import SCALING
from inference_blueprints.report.plan.sections.signal_store import SIGNAL_STORE, SignalStorePrice
from inference_blueprints.report.plan.sections.streaming import STREAMING, StreamingSummary
from inference_blueprints.report.pricing.ecs_price import ecs_items
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.report.pricing.streaming_price import ALARMS_PER_STREAM
from inference_blueprints.report.pricing.telemetry_price import (
    MonitoringSize,
    batch_signal_items,
    operations_items,
    telemetry_items,
)
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.node_copies import reads_node_copy
from inference_blueprints.serving.nodes.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.derived import controllers_of, platform_zones
from inference_blueprints.spec.types import Pool, Spec
from inference_catalog import InstanceType, ServicePrices, catalogue, node_facts
from inference_catalog.node_facts import (
    FREE_GP3_MIB_PER_SECOND,
    FREE_GP3_OPERATIONS,
    OPERATIONS_PER_MIB_PER_SECOND,
    image_volume_mib_per_second,
)
from inference_contracts.number_text import number
from inference_contracts.units import GB, HOURS_PER_DAY, HOURS_PER_MONTH

_PRICE_DECIMALS = 2
_NOT_PRICED = "not priced"


@dataclass(frozen=True, slots=True)
class PlatformCost:
    """Cost of a platform in a month of 730 hours, with the nodes that its workers use."""

    hours: int
    """Hours of a month."""
    region: str
    date: str
    source: str
    """`region`, `date`, `source`: Origin of the prices of services."""
    blueprint_region: str
    items: tuple[CostItem, ...]
    """The parts, the pools first."""
    usd_per_month: float
    """Sum of the parts that have a price."""
    not_priced: tuple[str, ...]
    """Names of the other parts."""


def _summarise(basis: PlanBasis) -> PlatformCost:
    """Return the cost of a month."""
    spec, services, roles, pools = basis.spec, basis.services, basis.workers, basis[POOLS]
    elastic = {role.pool.name for role in roles if role.workers.scaled_by is not None}
    items = (
        *(_pool_item(pool, is_elastic=pool.name in elastic) for pool in pools),
        *_volumes(spec.pools, pools, services),
        *(
            ecs_items(roles, HOURS_PER_MONTH, has_managed_hosts=any(each.is_managed_by_ecs for each in pools))
            if spec.cluster.ecs
            else _cluster(spec, basis.prices, services)
        ),
        *_network(spec, roles, services),
        *_storage(roles, services),
        *_optional_parts(basis[SIGNAL_STORE], basis[BATCH_WORKERS]),
        *_streaming(basis[KAFKA], basis[STREAMING], services),
        *telemetry_items(spec, basis[PROCESSES], _monitoring(basis), services),
        *batch_signal_items(spec, services),
        *operations_items(spec, services),
        *_by_use(spec, services),
    )
    return PlatformCost(
        hours=HOURS_PER_MONTH,
        region=services.region,
        date=services.date,
        source=services.source,
        blueprint_region=spec.environment.region,
        items=items,
        usd_per_month=round(sum(item.usd_per_month or 0.0 for item in items), _PRICE_DECIMALS),
        not_priced=tuple(item.name for item in items if item.usd_per_month is None),
    )


def _item(name: str, assumption: str, usd_per_month: float | None, *, is_bound: bool = False) -> CostItem:
    rounded = None if usd_per_month is None else round(usd_per_month, _PRICE_DECIMALS)
    return CostItem(name, assumption, rounded, is_bound)


def _hourly(name: str, assumption: str, usd_per_hour: float | None, *, is_bound: bool = False) -> CostItem:
    monthly = None if usd_per_hour is None else usd_per_hour * HOURS_PER_MONTH
    return _item(name, assumption, monthly, is_bound=is_bound)


def _daily(name: str, assumption: str, usd_per_day: float | None) -> CostItem:
    monthly = None if usd_per_day is None else usd_per_day * (HOURS_PER_MONTH / HOURS_PER_DAY)
    return _item(name, assumption, monthly)


def _pool_item(pool: PoolSummary, *, is_elastic: bool) -> CostItem:
    """Return the price of the used nodes; if it is unknown, the most that it can be."""
    nodes = f"{pool.nodes_used} {'node' if pool.nodes_used == 1 else 'nodes'} all month"
    if is_elastic:
        nodes += ", as if all elastic workers always ran"
    name = _pool_name(pool)
    if pool.usd_per_hour_used is not None:
        return _hourly(name, nodes, pool.usd_per_hour_used)
    bound = pool.usd_per_hour_used_at_most
    assumption = f"{nodes}; no price known" if bound is None else f"{nodes}, at most"
    return _hourly(name, assumption, bound, is_bound=bound is not None)


def _pool_name(pool: PoolSummary) -> str:
    return f"pool {pool.name}"


def _volumes(
    pools: Sequence[Pool], summaries: Sequence[PoolSummary], services: ServicePrices
) -> Iterator[CostItem]:
    """Yield the price of the EBS volumes of the used nodes."""
    for pool, summary in zip(pools, summaries, strict=True):
        types = pool.types
        size = summary.root_volume_gib + pool.disk.size_gib
        each = _volume_usd(size, pool, types, services)
        count = summary.nodes_used
        yield _item(f"EBS volumes of pool {pool.name}", f"{count} x {size} GiB gp3", count * each)


def _volume_usd(size_gib: int, pool: Pool, types: Sequence[InstanceType], services: ServicePrices) -> float:
    """Return the price of one node's volumes: size, and speed above what is free."""
    speed = image_volume_mib_per_second(types, from_snapshot=bool(pool.image_snapshot_id))
    more = max(0, (speed or 0) - FREE_GP3_MIB_PER_SECOND)
    operations = max(0, (speed or 0) * OPERATIONS_PER_MIB_PER_SECOND - FREE_GP3_OPERATIONS)
    return (
        _gp3_usd(size_gib, services)
        + more * services.usd("gp3_throughput")
        + operations * services.usd("gp3_operations")
    )


def _support(spec: Spec, services: ServicePrices) -> str:
    """Return the assumption on the cluster's support. The price depends on the day, not on the choice."""
    eks = spec.cluster.eks
    if eks is None or not eks.extended_support:
        return "1 cluster in standard support"
    ends = catalog.kubernetes_version(eks.version).standard_support_ends
    hourly = services.usd("eks_cluster") + services.usd("eks_extended_support")
    later = f"{hourly * HOURS_PER_MONTH:.2f} in extended support, from {ends}"
    return f"1 cluster of {eks.version} in standard support; {later}"


def _gp3_usd(size_gib: int, services: ServicePrices) -> float:
    """Return the price of a volume's size. AWS's GB of EBS are GiB."""
    return size_gib * services.usd("gp3_storage")


def _cluster(spec: Spec, prices: Prices, services: ServicePrices) -> Iterator[CostItem]:
    yield _hourly("EKS control plane", _support(spec, services), services.usd("eks_cluster"))
    count, kind = node_facts.NODES, node_facts.INSTANCE_TYPE
    each = prices.usd_per_hour(kind, "onDemand")
    yield _hourly(
        "system nodes",
        f"{count} x {kind}; Karpenter adds more if routers need them",
        None if each is None else count * each,
    )
    size = catalogue.shipped().bottlerocket.root_volume_gib + node_facts.DISK_GIB
    yield _item("EBS volumes of system nodes", f"{count} x {size} GiB gp3", count * _gp3_usd(size, services))


def _network(spec: Spec, roles: Sequence[ResolvedWorkers], services: ServicePrices) -> Iterator[CostItem]:
    """Yield the load balancer, and what the platform adds to a VPC of its own."""
    if not spec.network.existing:
        zones = len(platform_zones(spec.environment))
        each = services.usd("nat_gateway") + services.usd("public_ipv4")
        yield _hourly("NAT gateways", f"{zones}, with an IPv4 address each", zones * each)
        yield from _downloads(roles, services)
        count = sum(endpoint.kind == "interface" for endpoint in catalog.endpoints().values())
        yield _hourly(
            "interface endpoints",
            f"{count} in {zones} zones",
            count * zones * services.usd("interface_endpoint"),
        )
    yield _hourly("load balancer", "1, without capacity units", services.usd("application_load_balancer"))
    yield _item("private DNS zone", "1", services.usd("hosted_zone"))


def _downloads(roles: Sequence[ResolvedWorkers], services: ServicePrices) -> Iterator[CostItem]:
    """Yield the price of the weights that workers or nodes fetch from the Hub through NAT gateways."""
    size = sum(each.shape.weight_bytes * _copies(each) for each in roles if not each.model.weights.in_s3)
    size += sum(each.draft_file_bytes * each.workers.maximum * each.nodes for each in roles)
    if size:
        yield _item(
            "NAT gateway data",
            f"weights from the Hub, {size / GB:,.0f} GB each time all workers start; once",
            size / GB * services.usd("nat_gateway_data"),
        )


def _copies(workers: ResolvedWorkers) -> int:
    """Return how often workers fetch their weights: once per worker, or once per full node if they share."""
    pods = workers.workers.maximum * workers.nodes
    if not reads_node_copy(workers):
        return workers.workers.maximum
    return -(-pods // min(replicas_per_node(each, workers.accelerators_per_node) for each in workers.types))


def _storage(roles: Sequence[ResolvedWorkers], services: ServicePrices) -> Iterator[CostItem]:
    yield _item("KMS key", "1, before its first rotation", services.usd("kms_key"))
    mirrored = {each.model.name: each.shape.weight_bytes for each in roles if each.model.weights.mirror}
    if mirrored:
        size = sum(mirrored.values()) / GB
        yield _item("mirrored weights in S3", f"{size:,.0f} GB", size * services.usd("s3_standard"))


def _optional_parts(
    signal_store: SignalStorePrice | None, batch_workers: BatchWorkersSummary | None
) -> Iterator[CostItem]:
    if signal_store:
        full = signal_store.usd_per_hour_max * HOURS_PER_MONTH
        yield _hourly("signal store", f"empty; {full:,.2f} when full", signal_store.usd_per_hour_min)
    if batch_workers and batch_workers.usd_per_hour_min is not None:
        yield _hourly(
            "batch workers on Fargate",
            f"{batch_workers.workers_min} all month, on demand",
            batch_workers.usd_per_hour_min,
        )


def _streaming(
    kafka: KafkaSummary | None, jobs: Sequence[StreamingSummary], services: ServicePrices
) -> Iterator[CostItem]:
    if kafka and kafka.brokers is not None:
        written = f"{number(kafka.ingress_mb_per_second, 2)} MB/s written"
        assumption = f"{kafka.brokers} x {kafka.instance_type}, {written}, all month"
        yield _daily("Kafka brokers", assumption, kafka.usd_per_day)
    for job in jobs:
        kpus = f"{job.kpus} {'KPU' if job.kpus == 1 else 'KPUs'} and one for management, all month"
        yield _daily(f"streaming job {job.job}", kpus, job.usd_per_day)
    if jobs:
        alarms = ALARMS_PER_STREAM * len(jobs)
        usd = alarms * services.usd("metric_alarm") + services.usd("dashboard")
        yield _item("alarms of streaming", f"{alarms} alarms, 1 dashboard", usd)


def _monitoring(basis: PlanBasis) -> MonitoringSize:
    """Return what monitors the platform, if it is observed."""
    name, spec, plan = basis.blueprint.metadata.name, basis.spec, basis.plan
    recorded = platform_rules(name, plan, spec)
    alarms = platform_alarms(name, plan, on_ecs=spec.cluster.ecs is not None)
    return MonitoringSize(
        recorded_series=sum(rule.series for rule in recorded),
        promql_alarms=len(alarms),
        samples_per_minute=sum(alarm.samples for alarm in alarms),
        # The stack of operations has one of its own.
        dashboards=len(dashboard_rows()) + bool(controllers_of(spec)),
    )


def _by_use(spec: Spec, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the parts whose price depends on use."""
    yield _item(
        "load balancer capacity", f"{services.usd('load_balancer_capacity_unit')} USD per LCU-hour", None
    )
    if spec.observability is None:
        yield _item("logs", f"{services.usd('log_ingestion'):.2f} USD per GB ingested", None)
    yield _item("data transfer", "images, and traffic between zones and out of AWS", None)
    if any(model.kv_cache and model.kv_cache.shared for model in spec.models):
        yield _item("KV cache in S3", "depends on the prompts; see the price per million tokens", None)
    if spec.batch:
        yield _item("batch services", "functions, state machines, queues, tables and objects", None)


def month_in_short(summary: PlanSummary) -> str:
    """Return the cost of a month in a few words: a sum without the price of a pool is not the whole."""
    cost = summary[PLATFORM_COST]
    unknown = [pool.name for pool in summary[POOLS] if _pool_name(pool) in cost.not_priced]
    if unknown:
        return f"{cost.usd_per_month:,.0f} USD a month without the nodes of {', '.join(unknown)}"
    most = "at most " if summary[SCALING] else _most(cost)
    return f"{most}{cost.usd_per_month:,.0f} USD a month"


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the cost of a month in two parts, and what it leaves out."""
    cost, pools = summary[PLATFORM_COST], {_pool_name(pool): pool for pool in summary[POOLS]}
    nodes = sum(item.usd_per_month or 0.0 for item in cost.items if item.name in pools)
    where = "" if cost.region == cost.blueprint_region else f" at prices of {cost.region}"
    without = [name for name in cost.not_priced if name not in pools]
    known = "unknown" if set(pools) <= set(cost.not_priced) else f"{nodes:,.0f}"
    yield (
        Label.COST,
        f"a month{where}: nodes {known}, all else {cost.usd_per_month - nodes:,.0f}, "
        f"without {few(without, ', ')}",
    )
    for name, pool in pools.items():
        if name in cost.not_priced:
            yield (
                Label.WARNINGS,
                f"The cost of a month leaves out the nodes of {name}: their price is unknown. Pass it with "
                "--rates.",
            )
        elif pool.purchase == "capacityBlock":
            yield (
                Label.WARNINGS,
                f"The cost of a month counts {cost.hours} hours of {name}. You pay for a Capacity Block in "
                "advance, at the price of its offer, and for its days only.",
            )


def _most(cost: PlatformCost) -> str:
    return "at most " if any(item.is_bound for item in cost.items) else ""


def month(summary: PlanSummary) -> TextTable:
    """Return the table of a month's cost."""
    cost = summary[PLATFORM_COST]
    amount = f"{_most(cost)}{usd(cost.usd_per_month)}"
    total = ("total of the priced parts", "", amount)
    return TextTable(
        "Cost of a month",
        ("part", "assumption"),
        ("USD per month",),
        (*map(_row, cost.items), total),
        tuple(_notes(cost)),
    )


def _row(item: CostItem) -> tuple[str, ...]:
    price = _NOT_PRICED if item.usd_per_month is None else usd(item.usd_per_month)
    return (item.name, item.assumption, price)


def _notes(cost: PlatformCost) -> Iterator[str]:
    yield f"A month has {cost.hours} hours. Parts that are not priced depend on use, or have no known price."
    bounds = [item.name for item in cost.items if item.is_bound]
    if bounds:
        yield f"Counted at the most that they can cost: {', '.join(bounds)}."
    where = f"Prices of services are those of {cost.region}, {cost.date}, from AWS's price list."
    if cost.region == cost.blueprint_region:
        yield where
    else:
        yield f"{where} The blueprint deploys to {cost.blueprint_region}, where prices may differ."


PLATFORM_COST = PlanSection("platformCost", _summarise, _in_short, (month,))
