"""What the nodes of a blueprint, and its cells, use of what AWS limits."""

from __future__ import annotations

from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.report.figures import PoolSummary
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.spec.sections.environment.subnet_addresses import SYSTEM_PODS
from inference_blueprints.spec.types import Pool, Spec
from inference_blueprints.spec.zones import platform_zones
from inference_catalog import addresses, system_nodes
from inference_catalog.catalogue import shipped
from inference_contracts.health_names import WORKER_SERIES
from inference_contracts.operations_names import NAMES_PER_QUERY
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
        )
    )


def cell_use() -> FleetUse:
    """Return what each cell uses beside its pools: the most system nodes that it may have."""
    each = addresses.node_addresses(SYSTEM_PODS)
    nodes = system_nodes.MAXIMUM_NODES + system_nodes.OVERFLOW_MAXIMUM_NODES
    largest = max(catalog.instance_type(name).vcpu for name in system_nodes.OVERFLOW_INSTANCE_TYPES)
    disk = system_nodes.DISK_GIB + shipped().bottlerocket.root_volume_gib
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
