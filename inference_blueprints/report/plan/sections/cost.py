"""Price of a month of the whole platform, with its assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import inference_catalog as catalog
from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.render.monitoring.recording_rules import late_latencies
from inference_blueprints.report.figures import CostItem, PoolSummary, ProcessSummary
from inference_blueprints.report.plan.cells import few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.batch_workers import BATCH_WORKERS, BatchWorkersSummary
from inference_blueprints.report.plan.sections.edges import VCPUS_OF_SYSTEM_NODE
from inference_blueprints.report.plan.sections.front_door import FRONT_DOOR, FrontDoorSummary
from inference_blueprints.report.plan.sections.kafka import KAFKA, KafkaSummary
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.sections.signal_store import SIGNAL_STORE, SignalStorePrice
from inference_blueprints.report.plan.sections.streaming import STREAMING, StreamingSummary
from inference_blueprints.report.pricing.ecs_price import ecs_items
from inference_blueprints.report.pricing.network_price import network_items
from inference_blueprints.report.pricing.streaming_price import ALARMS_PER_STREAM
from inference_blueprints.report.pricing.telemetry_price import (
    MonitoringSize,
    batch_signal_items,
    operations_items,
    telemetry_items,
)
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.capacity_dates import moment
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import CapacityBlock, Pool, Spec
from inference_catalog import InstanceType, ServicePrices, catalogue, node_facts
from inference_catalog.node_facts import (
    FREE_GP3_MIB_PER_SECOND,
    FREE_GP3_OPERATIONS,
    OPERATIONS_PER_MIB_PER_SECOND,
    image_volume_mib_per_second,
)
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import GB, HOURS_PER_DAY, HOURS_PER_MONTH, SECONDS_PER_HOUR

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
    """Sum of the parts that have a price, each at the most that is planned."""
    usd_per_month_least: float
    """Sum of the least that they cost: elastic workers at their minimum, and what is only bounded as 0."""
    not_priced: tuple[str, ...]
    """Names of the other parts."""


def _summarise(basis: PlanBasis) -> PlatformCost:
    """Return the cost of a month."""
    spec, services, roles, pools = basis.spec, basis.services, basis.workers, basis[POOLS]
    used = [
        _pool_use(pool, summary, basis[PROCESSES]) for pool, summary in zip(spec.pools, pools, strict=True)
    ]
    items = (
        *map(_pool_item, used),
        *(_volumes(each, services) for each in used),
        *(
            ecs_items(roles, HOURS_PER_MONTH, has_managed_hosts=any(each.is_managed_by_ecs for each in pools))
            if spec.cluster.ecs
            else _cluster(basis, services)
        ),
        *network_items(spec, roles, services),
        *_storage(roles, services),
        *_optional_parts(basis[SIGNAL_STORE], basis[BATCH_WORKERS]),
        *_front_door(basis[FRONT_DOOR]),
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
        usd_per_month_least=round(sum(item.least for item in items), _PRICE_DECIMALS),
        not_priced=tuple(item.name for item in items if item.usd_per_month is None),
    )


def _item(
    name: str,
    assumption: str,
    usd_per_month: float | None,
    *,
    is_bound: bool = False,
    least: float | None = None,
) -> CostItem:
    """Return a part. Its least price is stated only if it is another one."""
    rounded = None if usd_per_month is None else round(usd_per_month, _PRICE_DECIMALS)
    lower = None if least is None else round(least, _PRICE_DECIMALS)
    return CostItem(name, assumption, rounded, is_bound, None if lower == rounded else lower)


def _hourly(name: str, assumption: str, usd_per_hour: float | None) -> CostItem:
    return _item(name, assumption, None if usd_per_hour is None else usd_per_hour * HOURS_PER_MONTH)


def _daily(name: str, assumption: str, usd_per_day: float | None) -> CostItem:
    monthly = None if usd_per_day is None else usd_per_day * (HOURS_PER_MONTH / HOURS_PER_DAY)
    return _item(name, assumption, monthly)


@dataclass(frozen=True, slots=True)
class _PoolUse:
    """How much of a month the nodes of a pool run."""

    pool: Pool
    summary: PoolSummary
    least: float
    """Share of the used nodes that runs if elastic workers are at their minimum."""
    hours: float | None
    """Hours of the month; None for a Capacity Block whose dates are unknown."""
    time: str
    """The hours in words."""


def _pool_use(pool: Pool, summary: PoolSummary, processes: Sequence[ProcessSummary]) -> _PoolUse:
    held = [each for each in processes if each.pool == pool.name]
    least = sum(each.replicas_least * each.accelerators for each in held)
    most = sum(each.replicas * each.accelerators for each in held)
    share = least / most if most else 1.0
    if summary.nodes_used:
        share = max(share, pool.nodes.min / summary.nodes_used)
    elastic = "" if share == 1.0 else ", as if all elastic workers always ran"
    if pool.purchase.capacity_block is None:
        return _PoolUse(pool, summary, share, HOURS_PER_MONTH, f"all month{elastic}")
    hours = _block_hours(pool.purchase.capacity_block)
    if hours is None:
        return _PoolUse(pool, summary, share, None, "for the days of a Capacity Block, which are not stated")
    return _PoolUse(pool, summary, 1.0, hours, f"for the {number(hours)} hours of the Capacity Block")


def _block_hours(block: CapacityBlock) -> float | None:
    """Return the hours of a month in which a Capacity Block is paid for; None without its dates."""
    starts, ends = (moment(time) if time else None for time in (block.starts, block.ends))
    if starts is None or ends is None:
        return None
    return min(float(HOURS_PER_MONTH), (ends - starts).total_seconds() / SECONDS_PER_HOUR)


def _pool_item(use: _PoolUse) -> CostItem:
    """Return the price of the used nodes; if it is unknown, the most that it can be."""
    pool = use.summary
    nodes = f"{pool.nodes_used:,} {'node' if pool.nodes_used == 1 else 'nodes'} {use.time}"
    name, known = _pool_name(pool), pool.usd_per_hour_used
    hourly = pool.usd_per_hour_used_at_most if known is None else known
    if hourly is None or use.hours is None:
        return _item(name, f"{nodes}; no price known" if hourly is None else nodes, None)
    monthly = hourly * use.hours
    if known is None:
        return _item(name, f"{nodes}, at most", monthly, is_bound=True)
    return _item(name, nodes, monthly, least=monthly * use.least)


def _pool_name(pool: PoolSummary) -> str:
    return f"pool {pool.name}"


def _volumes(use: _PoolUse, services: ServicePrices) -> CostItem:
    """Return the price of the EBS volumes of the used nodes."""
    pool, count = use.pool, use.summary.nodes_used
    size = use.summary.root_volume_gib + pool.disk.size_gib
    monthly = count * _volume_usd(size, pool, pool.types, services)
    name, assumption = f"EBS volumes of pool {pool.name}", f"{count:,} x {size} GiB gp3"
    if use.hours is None:
        return _item(name, f"{assumption}, {use.time}", None)
    monthly *= use.hours / HOURS_PER_MONTH
    return _item(name, assumption, monthly, least=monthly * use.least)


def _volume_usd(size_gib: int, pool: Pool, types: Sequence[InstanceType], services: ServicePrices) -> float:
    """Return the price of one node's volumes: size, and speed above what is free."""
    speed = image_volume_mib_per_second(types, from_snapshot=bool(pool.image_snapshot_id))
    more = max(0, (speed or 0) - FREE_GP3_MIB_PER_SECOND)
    operations = max(0, (speed or 0) * OPERATIONS_PER_MIB_PER_SECOND - FREE_GP3_OPERATIONS)
    return (
        size_gib * services.usd("gp3_storage")  # AWS's GB of EBS are GiB.
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


def _cluster(basis: PlanBasis, services: ServicePrices) -> Iterator[CostItem]:
    spec, prices = basis.spec, basis.prices
    yield _hourly("EKS control plane", _support(spec, services), services.usd("eks_cluster"))
    count, kind = node_facts.NODES, node_facts.INSTANCE_TYPE
    each = prices.usd_per_hour(kind, "onDemand")
    yield _hourly(
        "system nodes",
        f"{count} x {kind}",
        None if each is None else count * each,
    )
    here = count * VCPUS_OF_SYSTEM_NODE
    wanted = _vcpus_beside_pools(basis)
    programs = f"frontends, routers{', the front door' if basis.spec.front_door else ''} and batch workers"
    if wanted > here:
        yield _hourly(
            "nodes that Karpenter adds to them",
            f"{wanted:,} vCPUs of {programs}, of which {here} are there; at least",
            None if each is None else (wanted - here) / VCPUS_OF_SYSTEM_NODE * each,
        )
    size = catalogue.shipped().bottlerocket.root_volume_gib + node_facts.DISK_GIB
    yield _item(
        "EBS volumes of system nodes", f"{count} x {size} GiB gp3", count * size * services.usd("gp3_storage")
    )


def _vcpus_beside_pools(basis: PlanBasis) -> int:
    """Return the vCPUs that the processes without a pool and the fewest batch workers ask for."""
    deployments = [each for model in basis.plan.models for each in model.deployments]
    processes = [each for deployment in deployments for each in deployment.processes if each.pool is None]
    batch = basis[BATCH_WORKERS]
    workers = batch.workers_min * batch.vcpu if batch and batch.place == "eks" else 0
    door = basis[FRONT_DOOR]
    replicas = door.replicas * door.vcpus if door and door.place == "eks" else 0
    return sum(each.replicas * each.resources.cpu for each in processes) + workers + replicas


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


def _front_door(door: FrontDoorSummary | None) -> Iterator[CostItem]:
    """Yield the front door. On EKS, its pods are among those of the system nodes."""
    if door is None:
        return
    if door.usd_per_month is not None:
        size = f"{door.replicas} x {door.vcpus} vCPUs on demand, all month"
        yield _item("front door on Fargate", size, door.usd_per_month)
    yield _item(
        "store of budgets",
        f"empty, with about {number(door.store_units_per_second)} units (ECPU) per second, an estimate",
        door.store_usd_per_month,
    )
    yield _item("keys, usage records and audit", "DynamoDB, Firehose and S3, by use", None)


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
    late = late_latencies(plan, {each.name: each.objectives for each in spec.models})
    alarms = platform_alarms(name, plan, on_ecs=spec.cluster.ecs is not None, late=late)
    return MonitoringSize(
        recorded_series=sum(rule.series for rule in recorded),
        promql_alarms=len(alarms),
        samples_per_minute=sum(alarm.samples for alarm in alarms),
        # The stack of operations has one of its own.
        dashboards=len(dashboard_rows()) + bool(controllers_of(spec)),
    )


def _by_use(spec: Spec, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the parts whose price depends on use."""
    if spec.observability is None:
        yield _item("logs", f"{services.usd('log_ingestion'):.2f} USD per GB ingested", None)
    yield _item(
        "data transfer", "container images, traffic out of AWS, and what interface endpoints process", None
    )
    if any(model.kv_cache and model.kv_cache.shared for model in spec.models):
        yield _item("KV cache in S3", "depends on the prompts; see the price per million tokens", None)
    if spec.batch:
        yield _item("batch services", "functions, state machines, queues, tables and objects", None)


def month_in_short(summary: PlanSummary) -> str:
    """Return the cost of a month in a few words: a sum without the price of a pool is not the whole."""
    cost = summary[PLATFORM_COST]
    unknown = [pool.name for pool in summary[POOLS] if _pool_name(pool) in cost.not_priced]
    if unknown:
        return f"{_range(cost)} USD a month without the nodes of {', '.join(unknown)}"
    return f"{_range(cost)} USD a month"


def _range(cost: PlatformCost) -> str:
    """Return the least that all priced parts cost, and the most. What is not priced adds to both."""
    least, most = f"{cost.usd_per_month_least:,.0f}", f"{cost.usd_per_month:,.0f}"
    start = "at least " if cost.not_priced else ""
    return f"{start}{least}" if least == most else f"{start}{least} to {most}"


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the cost of a month in two parts, at most if it is a range, and what it leaves out."""
    cost, pools = summary[PLATFORM_COST], {_pool_name(pool): pool for pool in summary[POOLS]}
    nodes = sum(item.usd_per_month or 0.0 for item in cost.items if item.name in pools)
    bound = "" if round(cost.usd_per_month_least) == round(cost.usd_per_month) else " at most"
    where = "" if cost.region == cost.blueprint_region else f"{bound and ','} at prices of {cost.region}"
    without = [name for name in cost.not_priced if name not in pools]
    known = "unknown" if set(pools) <= set(cost.not_priced) else f"{nodes:,.0f}"
    yield (
        Label.COST,
        f"a month{bound}{where}: nodes {known}, all else {cost.usd_per_month - nodes:,.0f}, "
        f"without {few(without, ', ')}",
    )
    for name, pool in pools.items():
        if name in cost.not_priced:
            yield Label.WARNINGS, f"The cost of a month leaves out the nodes of {name}: {_why_unknown(pool)}."


def _why_unknown(pool: PoolSummary) -> str:
    if pool.purchase == "capacityBlock":
        return (
            "you pay for a Capacity Block in advance, at the price of its offer and for its days only. Pass "
            "the price per hour with --rates, and state 'starts' and 'ends' of the block"
        )
    return "their price is unknown. Pass it with --rates"


def month(summary: PlanSummary) -> TextTable:
    """Return the table of a month's cost."""
    cost = summary[PLATFORM_COST]
    least, most = usd(cost.usd_per_month_least), usd(cost.usd_per_month)
    total = ("total of the priced parts", "", most if least == most else f"{least} to {most}")
    return TextTable(
        "Cost of a month",
        ("part", "assumption"),
        ("USD per month",),
        (*map(_row, cost.items), total),
        tuple(_notes(cost)),
    )


def _row(item: CostItem) -> tuple[str, ...]:
    if item.usd_per_month is None:
        return (item.name, item.assumption, _NOT_PRICED)
    least, most = usd(item.least), usd(item.usd_per_month)
    return (item.name, item.assumption, most if item.is_bound or least == most else f"{least} to {most}")


def _notes(cost: PlatformCost) -> Iterator[str]:
    yield (
        f"A month has {cost.hours} hours, and the stated peak lasts all of them. Parts that are not priced "
        "depend on use, or have no known price: the platform costs more than the total."
    )
    if any(item.usd_per_month_least is not None for item in cost.items):
        yield "A range is that of elastic workers, from their smallest number to their largest."
    bounds = [item.name for item in cost.items if item.is_bound]
    if bounds:
        yield f"Counted at the most that they can cost, and as 0 in the least: {', '.join(bounds)}."
    where = f"Prices of services are those of {cost.region}, {cost.date}, from AWS's price list."
    if cost.region == cost.blueprint_region:
        yield where
    else:
        yield f"{where} The blueprint deploys to {cost.blueprint_region}, where prices may differ."


PLATFORM_COST = PlanSection("platformCost", _summarise, _in_short, (month,))
