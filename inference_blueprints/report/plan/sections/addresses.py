"""IPv4 addresses of the network, and the addresses that nodes need."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.sections.environment.network import (
    SYSTEM_PODS,
    pool_node_addresses,
    room_for_nodes,
    task_addresses,
)
from inference_blueprints.spec.types import Spec
from inference_catalog import node_facts
from inference_catalog.addresses import NodeAddresses, node_addresses
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class PoolAddresses:
    """Use of the network's IPv4 addresses by a pool."""

    pool: str
    """Whose nodes; the platform's own are ``system nodes``."""
    pods: int
    prefixes: int
    interfaces: int
    """`pods`, `prefixes`, `interfaces`: Per node: pods (on ECS, tasks) with an address, /28 prefixes and
    a spare one, interfaces with an address."""
    addresses_per_node: int
    """Addresses per node in total."""
    nodes_max: int
    """Maximum number of nodes."""
    nodes_in_a_subnet: int
    """Nodes of this pool that fit one zone's subnet if it is otherwise empty."""


@dataclass(frozen=True, slots=True)
class AddressUse:
    """The network's IPv4 addresses."""

    cidr: str
    """The range."""
    zones: int
    """The number of zones that share it."""
    addresses_in_a_zone: int
    """Addresses for nodes per zone; in an existing VPC, whose subnets are unknown, its share of the range."""
    is_exact: bool
    """Whether the subnets are known."""
    needed: int
    """Addresses of the maximum number of nodes."""
    available: int
    """Available addresses in all zones."""
    pools: tuple[PoolAddresses, ...]


def _summarise(spec: Spec) -> AddressUse:
    """Return the available addresses, and the most that nodes need.

    spec: Section of a valid blueprint. Its range can be divided.
    """
    room = room_for_nodes(spec.network, spec.environment)
    if room is None:
        raise ValueError("the network's range cannot be divided, which a valid blueprint excludes")
    system_maximum = node_facts.MAXIMUM_NODES + node_facts.OVERFLOW_MAXIMUM_NODES
    nodes = []
    if spec.cluster.eks:
        nodes.append(("system nodes", node_addresses(SYSTEM_PODS), system_maximum))
    for pool in spec.pools:
        types = pool.types
        nodes.append(
            (
                pool.name,
                pool_node_addresses(types, efa=pool.efa, on_ecs=spec.cluster.ecs is not None),
                pool.nodes.max,
            )
        )
    if spec.batch and (tasks := task_addresses(spec.batch)):
        nodes.append(("batch tasks", NodeAddresses(pods=1, prefixes=0, interfaces=1), tasks))
    return AddressUse(
        cidr=room.cidr,
        zones=room.zones,
        addresses_in_a_zone=room.in_a_zone,
        is_exact=room.is_exact,
        needed=sum(each.total * maximum for _, each, maximum in nodes),
        available=room.total,
        pools=tuple(
            PoolAddresses(
                pool=name,
                pods=each.pods,
                prefixes=each.prefixes,
                interfaces=each.interfaces,
                addresses_per_node=each.total,
                nodes_max=maximum,
                nodes_in_a_subnet=room.in_a_zone // each.total,
            )
            for name, each, maximum in nodes
        ),
    )


def addresses(summary: PlanSummary) -> TextTable:
    use = summary[ADDRESSES]
    left = f"{use.zones} subnets with {use.addresses_in_a_zone:,} addresses for nodes each"
    shared = f"at most {use.addresses_in_a_zone:,} addresses per zone, because the subnets are not known"
    return TextTable(
        "IPv4 addresses",
        ("nodes of",),
        (
            "pods per node" if any(each.prefixes for each in use.pools) else "tasks per node",
            "/28 prefixes per node",
            "interfaces per node",
            "addresses per node",
            "nodes, maximum",
            "nodes per subnet",
        ),
        tuple(map(_address_row, use.pools)),
        (
            f"{use.cidr}: {left if use.is_exact else shared}; the maximum number of nodes takes "
            f"{use.needed:,} of "
            f"{use.available:,}.",
        ),
    )


def _address_row(pool: PoolAddresses) -> tuple[str, ...]:
    return (
        pool.pool,
        str(pool.pods),
        str(pool.prefixes),
        str(pool.interfaces),
        str(pool.addresses_per_node),
        f"{pool.nodes_max:,}",
        f"{pool.nodes_in_a_subnet:,}",
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the use of addresses if the network limits growth."""
    use = summary[ADDRESSES]
    if use.needed * 2 > use.available:
        yield Label.LIMITS, f"{use.needed:,} of {use.available:,} IPv4 addresses"


ADDRESSES = PlanSection("addresses", lambda basis: _summarise(basis.spec), _in_short, (addresses,))
