"""Rules on whether the network has addresses for the nodes that the pools may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from inference_blueprints import catalog
from inference_blueprints.catalog import addresses, system_nodes
from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.network import LONGEST_PREFIX, SHORTEST_PREFIX
from inference_blueprints.spec.rules.pools import known_instance_types
from inference_blueprints.spec.types import Environment, Network, Pool
from inference_blueprints.spec.zones import platform_zones

#: Controllers and routers on a node of the platform's own, beside the daemons; more of them want more nodes.
SYSTEM_PODS = 8


@dataclass(frozen=True, slots=True)
class Room:
    """Addresses for nodes in all zones together.

    Parameters
    ----------
    cidr, zones
        What is divided, and among how many zones.
    in_a_zone
        Left for nodes in each zone; of an existing VPC, whose subnets are unknown, its share of the range.
    is_exact
        Whether the subnets are known.
    """

    cidr: str
    zones: int
    in_a_zone: int
    is_exact: bool

    @property
    def total(self) -> int:
        """Addresses in all zones."""
        return self.zones * self.in_a_zone


def room_for_nodes(network: Network, environment: Environment) -> Room | None:
    """Return what the network has for nodes; None where its range is not valid, which other rules report.

    Parameters
    ----------
    network, environment
        The blueprint's sections.
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


def pool_node_addresses(instance_types: list[catalog.InstanceType]) -> addresses.NodeAddresses:
    """Return what a node of a pool takes at the most: a serving pod a device.

    Parameters
    ----------
    instance_types
        The pool's types.
    """
    return addresses.node_addresses(max(instance_type.accelerator_count for instance_type in instance_types))


def system_node_addresses() -> int:
    """Return what the platform's own nodes take when there are as many as there may be."""
    nodes = system_nodes.MAXIMUM_NODES + system_nodes.OVERFLOW_MAXIMUM_NODES
    return nodes * addresses.node_addresses(SYSTEM_PODS).total


def pools_fit_the_network(
    network: Network, environment: Environment, pools: Mapping[int, Pool]
) -> Iterator[Finding]:
    """Check that the subnets have addresses for every node that the pools may hold."""
    room = room_for_nodes(network, environment)
    sizes = {
        index: (pool.nodes.max, pool_node_addresses(known).total)
        for index, pool in pools.items()
        if (known := known_instance_types(pool))
    }
    if room is None or not sizes:
        return
    system = system_node_addresses()
    needed = system + sum(nodes * each for nodes, each in sizes.values())
    if needed <= room.total:
        return
    largest = max(sizes, key=lambda index: sizes[index][0] * sizes[index][1])
    nodes, each = sizes[largest]
    others = needed - nodes * each
    fitting = (room.total - others) // each
    advice = f"lower it to {fitting}, or " if fitting > 0 else ""
    where = f"{room.zones} subnets of {room.in_a_zone}" if room.is_exact else "at the most"
    message = (
        f"got {nodes}, the network has no addresses for them: {nodes} * {each} and {others} for other nodes "
        f"are {needed}, {room.cidr} leaves {room.total} ({where}); {advice}give the network a larger range"
    )
    yield Finding(("spec", "pools", largest, "nodes", "max"), message)
