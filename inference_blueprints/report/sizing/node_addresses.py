"""IPv4 addresses of the network, and the addresses that nodes need."""

from __future__ import annotations

import inference_catalog as catalog
from inference_blueprints.report.figures import AddressUse, PoolAddresses
from inference_blueprints.spec.rules.subnet_addresses import (
    SYSTEM_PODS,
    pool_node_addresses,
    room_for_nodes,
    task_addresses,
)
from inference_blueprints.spec.types import Spec
from inference_catalog import addresses, system_nodes


def address_use(spec: Spec) -> AddressUse:
    """Return the available addresses, and the most that nodes need.

    Parameters
    ----------
    spec
        Section of a valid blueprint. Its range can be divided.
    """
    room = room_for_nodes(spec.network, spec.environment)
    if room is None:
        raise ValueError("the network's range cannot be divided, which a valid blueprint excludes")
    system_maximum = system_nodes.MAXIMUM_NODES + system_nodes.OVERFLOW_MAXIMUM_NODES
    nodes = []
    if spec.cluster.eks:
        nodes.append(("system nodes", addresses.node_addresses(SYSTEM_PODS), system_maximum))
    for pool in spec.pools:
        types = [catalog.instance_type(name) for name in pool.instance_types]
        nodes.append((pool.name, pool_node_addresses(types, efa=pool.efa), pool.nodes.max))
    if spec.batch and (tasks := task_addresses(spec.batch)):
        nodes.append(("batch tasks", addresses.NodeAddresses(pods=1, prefixes=0, interfaces=1), tasks))
    return AddressUse(
        cidr=room.cidr,
        zones=room.zones,
        addresses_in_a_zone=room.in_a_zone,
        is_exact=room.is_exact,
        needed=sum(each.total * most for _, each, most in nodes),
        available=room.total,
        pools=tuple(
            PoolAddresses(
                pool=name,
                pods=each.pods,
                prefixes=each.prefixes,
                interfaces=each.interfaces,
                addresses_per_node=each.total,
                nodes_max=most,
                nodes_in_a_subnet=room.in_a_zone // each.total,
            )
            for name, each, most in nodes
        ),
    )
