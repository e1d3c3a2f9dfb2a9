"""Rules on whether the subnets have enough addresses for nodes and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

import inference_catalog as catalog
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.sections.environment.network import LONGEST_PREFIX, SHORTEST_PREFIX
from inference_blueprints.spec.types import Batch, Environment, Network, Spec
from inference_blueprints.spec.zones import platform_zones
from inference_catalog import addresses, batch_worker_sizes, system_nodes
from inference_catalog.efa import efa_layouts_are_one
from inference_contracts.errors import Finding

#: Controllers and routers per system node, besides the daemons; more of them need more nodes.
SYSTEM_PODS = 8


@dataclass(frozen=True, slots=True)
class Room:
    """IP addresses for nodes, in all zones together."""

    cidr: str
    """The range."""
    zones: int
    """The number of zones that share it."""
    in_a_zone: int
    """Addresses for nodes per zone; in an existing VPC, whose subnets are unknown, its share of the range."""
    is_exact: bool
    """Whether the subnets are known."""

    @property
    def total(self) -> int:
        """Addresses in all zones."""
        return self.zones * self.in_a_zone


def room_for_nodes(network: Network, environment: Environment) -> Room | None:
    """Return the addresses for nodes; None if the range is not valid, which other rules report.

    network, environment: The blueprint's sections.
    """
    cidr = network.existing.vpc_cidr if network.existing else network.cidr or addresses.DEFAULT_CIDR
    try:
        parsed = IPv4Network(cidr)
    except ValueError:
        return None
    if network.existing:
        zones = len(network.existing.private_subnet_ids)
        reserved = addresses.RESERVED_IN_A_SUBNET * zones
        return Room(cidr, zones, max(0, parsed.num_addresses - reserved) // zones, is_exact=False)
    is_known = environment.availability_zones or environment.region in catalog.regions()
    if not is_known or not SHORTEST_PREFIX <= parsed.prefixlen <= LONGEST_PREFIX:
        return None
    zones = len(platform_zones(environment))
    endpoints = sum(endpoint.kind == "interface" for endpoint in catalog.endpoints().values())
    return Room(cidr, zones, addresses.addresses_for_nodes(cidr, zones, endpoints=endpoints), is_exact=True)


def pool_node_addresses(types: Sequence[catalog.InstanceType], *, efa: bool) -> addresses.NodeAddresses:
    """Return the addresses that a node of a pool uses at most, with one serving pod per device.

    efa: Whether the nodes have EFA interfaces. If the layouts of the types differ, Karpenter attaches the
        interfaces itself, each with an address; else they are `efa-only` and have no address.
    """
    devices = max(instance_type.accelerator_count for instance_type in types)
    if not efa or efa_layouts_are_one(types):
        return addresses.node_addresses(devices)
    interfaces = max(instance_type.efa_interfaces for instance_type in types)
    return addresses.node_addresses(devices, interfaces=max(1, interfaces))


def system_node_addresses() -> int:
    """Return the addresses of the maximum number of system nodes."""
    nodes = system_nodes.MAXIMUM_NODES + system_nodes.OVERFLOW_MAXIMUM_NODES
    return nodes * addresses.node_addresses(SYSTEM_PODS).total


@rule
def pools_fit_the_network(spec: Spec) -> Iterator[Finding]:
    """Check that the subnets have enough addresses for all nodes of all pools."""
    room = room_for_nodes(spec.network, spec.environment)
    if room is None:
        return
    demands = [
        _Demand(index, pool.nodes.max, pool_node_addresses(known, efa=pool.efa).total, pool.availability_zone)
        for index, pool in usable(spec.pools)
        if (known := pool.types)
    ]
    where = f"{room.zones} subnets of {room.in_a_zone}" if room.is_exact else "at most"
    system = system_node_addresses()
    yield from _too_many(demands, system, room.total, f"{room.cidr} leaves {room.total} ({where})")
    if room.is_exact:
        for zone in sorted({each.zone for each in demands if each.zone}):
            of_zone = [each for each in demands if each.zone == zone]
            left = f"the subnet of {zone} leaves {room.in_a_zone}"
            yield from _too_many(of_zone, 0, room.in_a_zone, left)


def task_addresses(batch: Batch) -> int:
    """Return the addresses of ECS tasks: one per task, while a deployment replaces all tasks.

    batch: The blueprint's section.
    """
    models = len({queue.model for queue in batch.queues})
    return models * batch.workers.max * batch_worker_sizes.TASKS_WHILE_REPLACED if batch.workers.ecs else 0


@rule
def tasks_fit_the_network(spec: Spec) -> Iterator[Finding]:
    """Check that the subnets have enough addresses for batch tasks in addition to all nodes."""
    room = room_for_nodes(spec.network, spec.environment)
    batch = spec.batch
    if room is None or batch is None or not (needed := task_addresses(batch)):
        return
    nodes = system_node_addresses() + sum(
        pool.nodes.max * pool_node_addresses(known, efa=pool.efa).total
        for _, pool in usable(spec.pools)
        if (known := pool.types)
    )
    # Another rule reports too many nodes.
    if nodes <= room.total < nodes + needed:
        message = (
            f"got {batch.workers.max}, the network has too few addresses for the tasks: they need {needed} "
            f"while a deployment replaces them, {room.cidr} leaves {room.total - nodes} besides all nodes; "
            "lower it, or give the network a larger range"
        )
        yield Finding(("spec", "batch", "workers", "max"), message)


@dataclass(frozen=True, slots=True)
class _Demand:
    """Maximum demand of a pool: its index in the file, nodes, addresses per node, and its only zone."""

    index: int
    nodes: int
    each: int
    zone: str | None

    @property
    def total(self) -> int:
        return self.nodes * self.each


def _too_many(demands: list[_Demand], system: int, available: int, left: str) -> Iterator[Finding]:
    """Yield a finding on the largest pool if nodes need more addresses than there are."""
    needed = system + sum(demand.total for demand in demands)
    if not demands or needed <= available:
        return
    largest = max(demands, key=lambda demand: demand.total)
    others = needed - largest.total
    fitting = (available - others) // largest.each
    advice = f"lower it to {fitting}, or " if fitting > 0 else ""
    message = (
        f"got {largest.nodes}, the network has too few addresses: {largest.nodes} * {largest.each} + "
        f"{others} for other nodes = {needed}, {left}; {advice}give the network a larger range"
    )
    yield Finding(("spec", "pools", largest.index, "nodes", "max"), message)
