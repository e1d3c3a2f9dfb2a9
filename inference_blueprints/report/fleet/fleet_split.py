"""How many clusters and accounts a fleet needs, and which limit decides it.

A cell is one cluster in a VPC of its own, with nodes in the proportions of the blueprint's pools. Cells are
as large as the limits allow that nobody can raise, or that AWS raises to a documented value.
Limits of an account decide how many cells share one account in one region if nobody can raise them;
the others are asked for.
"""

from __future__ import annotations

import math

import inference_catalog as catalog
from inference_blueprints.render.eks.prometheus_size import MAX_SERIES
from inference_blueprints.report.figures import PoolSummary
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.sections.quotas import QUOTAS
from inference_blueprints.report.pricing.telemetry_price import process_series
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.sections.environment.network import SYSTEM_PODS
from inference_blueprints.spec.types import Pool, Spec
from inference_catalog import FleetLimit, addresses, node_facts
from inference_catalog.catalogue import shipped
from inference_contracts.errors import UserError
from inference_contracts.health_names import WORKER_SERIES
from inference_contracts.operations_names import NAMES_PER_QUERY, QUERIES_AT_ONCE
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_MINUTE
from inference_decisions.repairs.health_settings import HealthSettings

_GIB_PER_TIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUse:
    """What is used. Quantities are those that a `FleetLimit` counts."""

    gpus: float = 0.0
    """Accelerators."""
    nodes: float = 0.0
    pods: float = 0.0
    """Pods, those of daemon sets included."""
    network_units: float = 0.0
    """Units of Network Address Usage: addresses of pods and interfaces, prefixes, further interfaces."""
    ip_addresses: float = 0.0
    """IPv4 addresses, with the whole prefixes."""
    interfaces: float = 0.0
    """Network interfaces, those of EFA included."""
    vcpus: float = 0.0
    """vCPUs."""
    gp3_tib: float = 0.0
    """Storage on EBS, in TiB."""
    workers: float = 0.0
    """Workers whose metrics are compared."""
    frontends: float = 0.0
    """Pods behind the load balancer."""
    series: float = 0.0
    """Series of the cell's Prometheus, which GPU health needs."""

    @property
    def case_writes_per_second(self) -> float:
        """Writes of the cases of as many nodes as GPU health tolerates, once a minute."""
        return self.nodes * HealthSettings().max_unhealthy_percent / 100 / SECONDS_PER_MINUTE

    @property
    def queries_per_second(self) -> float:
        """PromQL queries of GPU health, spread over a minute: series of workers, and the GPUs of nodes."""
        named = len(WORKER_SERIES) * self.workers + self.nodes
        return named / NAMES_PER_QUERY / SECONDS_PER_MINUTE

    def times(self, factor: float) -> FleetUse:
        """Return as much of everything."""
        return FleetUse(**{name: getattr(self, name) * factor for name in self.__dataclass_fields__})

    def plus(self, other: FleetUse) -> FleetUse:
        """Return the sum."""
        return FleetUse(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__}
        )


def platform_use(spec: Spec, summary: PlanSummary) -> FleetUse:
    """Return what a blueprint's pools use at their maximum.

    spec: Section of a valid blueprint.
    """
    total = FleetUse()
    for pool, figures in zip(spec.pools, summary[POOLS], strict=True):
        total = total.plus(_pool_use(pool, figures, summary))
    ranges = [each for each in summary[PROCESSES] if each.pool]
    return total.plus(
        FleetUse(
            workers=sum(each.replicas for each in ranges),
            frontends=sum(each.replicas for each in summary[PROCESSES] if not each.pool),
            # A larger fleet has more deployments like those of the blueprint.
            series=float(process_series(summary[PROCESSES])),
        )
    )


def cell_use() -> FleetUse:
    """Return what each cell uses beside its pools: the most system nodes that it may have."""
    each = addresses.node_addresses(SYSTEM_PODS)
    nodes = node_facts.MAXIMUM_NODES + node_facts.OVERFLOW_MAXIMUM_NODES
    largest = max(catalog.instance_type(name).vcpu for name in node_facts.OVERFLOW_INSTANCE_TYPES)
    disk = node_facts.DISK_GIB + shipped().bottlerocket.root_volume_gib
    return FleetUse(
        nodes=1.0,
        pods=each.pods,
        network_units=each.pods + each.prefixes + each.interfaces,
        ip_addresses=each.total,
        interfaces=each.interfaces,
        vcpus=largest,
        gp3_tib=disk / _GIB_PER_TIB,
    ).times(nodes)


def elastic_addresses(spec: Spec) -> int:
    """Return the elastic addresses of a cell: one per NAT gateway. An existing VPC has its own."""
    return 0 if spec.network.existing else len(platform_zones(spec.environment))


def _pool_use(pool: Pool, figures: PoolSummary, summary: PlanSummary) -> FleetUse:
    types = pool.types
    each = next(row for row in summary[ADDRESSES].pools if row.pool == pool.name)
    efa = max(kind.efa_interfaces or 0 for kind in types) if pool.efa else 0
    interfaces = 1 + efa
    nodes = figures.nodes_max
    return (
        FleetUse(
            nodes=1.0,
            pods=each.pods,
            network_units=each.pods + each.prefixes + interfaces,
            ip_addresses=each.addresses_per_node,
            interfaces=interfaces,
            vcpus=max(kind.vcpu for kind in types),
            gp3_tib=(figures.root_volume_gib + pool.disk.size_gib) / _GIB_PER_TIB,
        )
        .times(nodes)
        .plus(FleetUse(gpus=figures.accelerators_max))
    )


#: The network's limit. The range is the blueprint's.
_ADDRESSES = "addresses"
#: The limit of our own Prometheus, whose memory fits on a system node.
_PROMETHEUS = FleetLimit(
    name="prometheus.series",
    limit="series of the cell's Prometheus, whose memory fits on a system node",
    scope="cell",
    counts="series",
    unit="series",
    value=MAX_SERIES,
    most=MAX_SERIES,
    code="",
    source="https://prometheus.io/docs/prometheus/latest/storage/",
)


@dataclass(frozen=True, slots=True)
class CellLimit:
    """What one limit allows a cell."""

    name: str
    limit: str
    unit: str
    source: str
    """`name`, `limit`, `unit`, `source`: As in `FleetLimit`."""
    per_node: float
    """What a node of the blueprint's mix uses."""
    value: float
    """The limit that is reckoned with."""
    is_raised: bool
    """Whether it is more than an account's default, and has to be asked for."""
    nodes: int
    """Nodes that it allows."""
    gpus: int
    """Accelerators on them."""


@dataclass(frozen=True, slots=True)
class AccountLimit:
    """What one limit means for an account in a region."""

    name: str
    limit: str
    unit: str
    code: str
    source: str
    """`name`, `limit`, `unit`, `code`, `source`: As in `FleetLimit`."""
    used: float
    """What the cells of one account use."""
    value: float | None
    """Default. None if a new account's default is unknown, as of vCPUs."""
    cells: int | None
    """Cells that it allows, if nobody can raise it; else None."""

    @property
    def is_exceeded(self) -> bool:
        """Whether the default does not suffice, or is unknown."""
        return self.value is None or self.used > self.value


@dataclass(frozen=True, slots=True)
class FleetSplit:
    """How a fleet is split."""

    gpus: int
    nodes: int
    """`gpus`, `nodes`: Size of the fleet."""
    cells: int
    nodes_per_cell: int
    gpus_per_cell: int
    """`cells`, `nodes_per_cell`, `gpus_per_cell`: Cells, and the size of the largest one."""
    accounts: int
    cells_per_account: int
    """`accounts`, `cells_per_account`: Pairs of an account and a region, and the most cells of one."""
    decides_cell: str
    decides_account: str
    """`decides_cell`, `decides_account`: Names of the limits that decide. The second is empty if no limit
    does."""
    cell_limits: tuple[CellLimit, ...]
    account_limits: tuple[AccountLimit, ...]
    """`cell_limits`, `account_limits`: All limits."""
    use: FleetUse
    """What the whole fleet uses, without the system nodes of the cells."""


def fleet_split(spec: Spec, summary: PlanSummary, gpus: int) -> FleetSplit:
    """Return how a fleet is split.

    spec: Section of a valid blueprint.
    gpus: Accelerators of the fleet.
    Raises UserError if the blueprint has no accelerator.
    """
    platform, fixed = platform_use(spec, summary), cell_use()
    if not platform.gpus:
        raise UserError(f"{summary.name}: got no pool with accelerators; --fleet counts accelerators")
    node = platform.times(1 / platform.nodes)
    nodes = math.ceil(gpus / node.gpus - 1e-9)
    limits = catalog.fleet_limits().values()
    of_cell = tuple(_cell_limit(each, node, fixed) for each in limits if each.scope == "cell")
    prometheus = _reckoned(_PROMETHEUS, MAX_SERIES, node.series, fixed.series, node.gpus)
    of_cell = (*of_cell, prometheus, _room(summary, node, fixed))
    narrowest = min(of_cell, key=lambda each: each.nodes)
    if narrowest.nodes < 1:
        raise UserError(f"{summary.name}: got no room for a node in a cell: {narrowest.limit}")
    cells = math.ceil(nodes / narrowest.nodes)
    largest = math.ceil(nodes / cells)
    cell = node.times(largest).plus(fixed)
    counted = [each for each in limits if each.scope == "account"]
    allowed = {each.name: _cells(each, cell, spec) for each in counted if each.most is not None}
    decides = min(allowed, key=lambda name: allowed[name])
    accounts = math.ceil(cells / allowed[decides])
    shared = math.ceil(cells / accounts)
    of_account = tuple(
        AccountLimit(
            each.name,
            each.limit,
            each.unit,
            each.code,
            each.source,
            shared * _of_cell(each, cell, spec),
            each.value,
            allowed.get(each.name),
        )
        for each in counted
    )
    return FleetSplit(
        gpus=gpus,
        nodes=nodes,
        cells=cells,
        nodes_per_cell=largest,
        gpus_per_cell=math.floor(largest * node.gpus + 1e-9),
        accounts=accounts,
        cells_per_account=shared,
        decides_cell=narrowest.name,
        decides_account=decides if accounts > 1 else "",
        cell_limits=of_cell,
        account_limits=(*of_account, *_vcpus(summary, platform, largest * shared)),
        use=node.times(nodes),
    )


def _cell_limit(limit: FleetLimit, node: FleetUse, fixed: FleetUse) -> CellLimit:
    value = limit.value if limit.most is None else limit.most
    return _reckoned(
        limit, value, float(getattr(node, limit.counts)), float(getattr(fixed, limit.counts)), node.gpus
    )


def _reckoned(limit: FleetLimit, value: float, per_node: float, fixed: float, gpus: float) -> CellLimit:
    # A limit that no node counts towards allows as many nodes as its value.
    nodes = max(0, math.floor((value - fixed) / per_node + 1e-9)) if per_node else math.floor(value * 1e6)
    return CellLimit(
        limit.name,
        limit.limit,
        limit.unit,
        limit.source,
        per_node,
        value,
        value > limit.value,
        nodes,
        math.floor(nodes * gpus + 1e-9),
    )


def _room(summary: PlanSummary, node: FleetUse, fixed: FleetUse) -> CellLimit:
    available = summary[ADDRESSES].available
    limit = FleetLimit(
        name=_ADDRESSES,
        limit=f"IPv4 addresses for nodes in {summary[ADDRESSES].cidr}, the blueprint's range",
        scope="cell",
        counts="ip_addresses",
        unit="addresses",
        value=available,
        most=available,
        code="",
        source="https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html",
    )
    return _reckoned(limit, available, node.ip_addresses, fixed.ip_addresses, node.gpus)


def _of_cell(limit: FleetLimit, cell: FleetUse, spec: Spec) -> float:
    """Return what one cell uses of a limit of an account."""
    own = {
        "cells": 1.0,
        "elastic_addresses": float(elastic_addresses(spec)),
        "queries_at_once": float(QUERIES_AT_ONCE),
    }
    return own[limit.counts] if limit.counts in own else float(getattr(cell, limit.counts))


def _cells(limit: FleetLimit, cell: FleetUse, spec: Spec) -> int:
    used = _of_cell(limit, cell, spec)
    maximum = limit.value if limit.most is None else limit.most
    return max(1, math.floor(maximum / used)) if used else math.floor(maximum * 1e6)


def _vcpus(summary: PlanSummary, platform: FleetUse, nodes: int) -> tuple[AccountLimit, ...]:
    """Return the vCPUs of the pools of one account by quota. Defaults of new accounts are unknown here."""
    return tuple(
        AccountLimit(
            f"ec2.{need.code or need.purchase}",
            f"vCPUs: {need.name or need.purchase}",
            "vCPUs",
            need.code,
            "https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html",
            need.vcpu_max / platform.nodes * nodes,
            None,
            None,
        )
        for need in summary[QUOTAS]
        if set(need.pools) != {"system nodes"}
    )
