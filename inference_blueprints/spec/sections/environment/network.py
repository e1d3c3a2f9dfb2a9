"""Rules on the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

import inference_catalog as catalog
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Batch, Environment, Network, Spec
from inference_blueprints.spec.wording import duplicates, quote
from inference_catalog import addresses, ecs_hosts, node_facts
from inference_catalog.node_facts import efa_layouts_are_one
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass

_PATH = ("spec", "network")

#: A VPC can have /16 to /28 (Amazon VPC User Guide, "VPC CIDR blocks"); the pods of a few nodes fill a range
#: smaller than /20.
SHORTEST_PREFIX = 16
LONGEST_PREFIX = 20
_EVERYWHERE = "0.0.0.0/0"
#: Ranges that EC2 refuses for a VPC: this network, loopback, link-local, multicast and reserved ranges
#: (RFC 6890; Amazon EC2 API, CreateVpc).
_UNUSABLE = tuple(
    IPv4Network(each) for each in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
)


@rule
def new_or_existing(spec: Spec) -> Iterator[Finding]:
    """Check that `cidr` is not given for an existing VPC."""
    network = spec.network
    if network.cidr and network.existing:
        yield Finding(
            (*_PATH, "cidr"), "got both 'cidr' and 'existing'; remove 'cidr', or 'existing' for a new VPC"
        )


@rule
def range_is_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the range of the new VPC is valid and has an allowed size."""
    network = spec.network
    if network.cidr is None:
        return
    path = (*_PATH, "cidr")
    fault = _fault(network.cidr)
    if fault:
        yield Finding(path, fault)
    elif not SHORTEST_PREFIX <= IPv4Network(network.cidr).prefixlen <= LONGEST_PREFIX:
        yield Finding(
            path, f"got {quote(network.cidr)}, allowed sizes are /{SHORTEST_PREFIX} to /{LONGEST_PREFIX}"
        )
    elif any(IPv4Network(network.cidr).overlaps(each) for each in _UNUSABLE):
        message = (
            f"got {quote(network.cidr)}, which AWS does not allow for a VPC; use a private range "
            "such as 10.0.0.0/16"
        )
        yield Finding(path, message)


@rule
def range_is_private(spec: Spec) -> Iterator[Finding]:
    """Check that the range of the new VPC is not one of the internet's.

    AWS allows it, and recommends private ranges (Amazon VPC User Guide, "VPC CIDR blocks").
    """
    cidr = spec.network.cidr
    if cidr and not _fault(cidr) and IPv4Network(cidr).is_global:
        message = (
            f"{quote(cidr)} belongs to the internet: the platform cannot reach the hosts that have these "
            "addresses there; use a private range such as 10.0.0.0/16, unless the range is yours"
        )
        yield Finding((*_PATH, "cidr"), message, "warning")


@rule
def existing_range_is_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the range of the existing VPC is valid."""
    network = spec.network
    fault = _fault(network.existing.vpc_cidr) if network.existing else ""
    if fault:
        yield Finding((*_PATH, "existing", "vpcCidr"), fault)


@rule
def sources_are_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the ranges that may call the models are valid, and not all addresses."""
    for index, cidr in usable(spec.network.source_cidrs or ()):
        path = (*_PATH, "sourceCidrs", index)
        fault = _fault(cidr)
        if fault:
            yield Finding(path, fault)
        elif cidr == _EVERYWHERE:
            message = f"{_EVERYWHERE} admits everyone who can reach the VPC; list the ranges of the callers"
            yield Finding(path, message, "warning")


@rule
def subnets_match_zones(spec: Spec) -> Iterator[Finding]:
    """Check that each subnet of an existing VPC has a zone."""
    network = spec.network
    if network.existing is None:
        return
    zones = spec.environment.availability_zones
    subnets = len(network.existing.private_subnet_ids)
    if zones is None:
        message = f"is missing; list the zones of the {subnets} subnets of `network.existing`, in their order"
        yield Finding(("spec", "environment", "availabilityZones"), message)
    elif len(zones) != subnets:
        message = (
            f"got {subnets} subnets, `environment.availabilityZones` has {len(zones)}; give each "
            "subnet one zone"
        )
        yield Finding((*_PATH, "existing", "privateSubnetIds"), message)


@rule
def subnets_differ(spec: Spec) -> Iterator[Finding]:
    """Check that no subnet is named twice."""
    network = spec.network
    for index, subnet in duplicates(network.existing.private_subnet_ids if network.existing else ()):
        path = (*_PATH, "existing", "privateSubnetIds", index)
        yield Finding(path, f"got {quote(subnet)} twice; name each subnet once")


@rule
def certificate_has_a_domain(spec: Spec) -> Iterator[Finding]:
    """Check that a certificate comes with its domain."""
    network = spec.network
    if network.certificate_arn and network.domain is None:
        message = "is missing: 'certificateArn' requires the domain of the certificate"
        yield Finding((*_PATH, "domain"), message)


@rule
def certificate_is_in_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that the certificate is in the region of the platform."""
    arn = spec.network.certificate_arn
    if arn and is_in_wrong_region(arn, spec.environment):
        yield Finding(
            (*_PATH, "certificateArn"), in_wrong_region("certificate", arn, spec.environment.region)
        )


@rule
def connections_are_encrypted(spec: Spec) -> Iterator[Finding]:
    """Check that connections to the models are encrypted."""
    if spec.network.certificate_arn is None:
        message = (
            "models answer over unencrypted HTTP inside the VPC; set 'certificateArn' and 'domain' for HTTPS"
        )
        yield Finding(_PATH, message, "warning")


def is_in_wrong_region(arn: str, environment: Environment) -> bool:
    """Return whether an ARN is in another region than the platform; False if that region is unknown."""
    return environment.region in catalog.regions() and _region(arn) != environment.region


def in_wrong_region(kind: str, arn: str, region: str) -> str:
    """Return the message for an ARN in another region than the platform."""
    return f"got a {kind} in {quote(_region(arn))}, it must be in {quote(region)} like `environment.region`"


def _region(arn: str) -> str:
    return arn.split(":")[3]


def _fault(cidr: str) -> str:
    """Return the message for an invalid IPv4 range; empty if it is valid."""
    try:
        IPv4Network(cidr)
    except ValueError:
        try:
            network = IPv4Network(cidr, strict=False)
        except ValueError:
            return f"got {quote(cidr)}, expected an IPv4 range such as 10.0.0.0/16"
        return f"got {quote(cidr)}, which is an address and not a range; did you mean '{network}'?"
    return ""


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


def pool_node_addresses(
    types: Sequence[catalog.InstanceType], *, efa: bool, on_ecs: bool = False
) -> addresses.NodeAddresses:
    """Return the addresses that a node of a pool uses at most, with one serving pod or task per device.

    On ECS, a host has its own address, and each task an interface with one (Amazon ECS Developer Guide,
    "Allocate a network interface for an Amazon ECS task").

    efa: Whether the nodes have EFA interfaces. If the layouts of the types differ, Karpenter attaches the
        interfaces itself, each with an address; else they are `efa-only` and have no address.
    """
    devices = max(instance_type.accelerator_count for instance_type in types)
    if on_ecs:
        return addresses.NodeAddresses(pods=devices, prefixes=0, interfaces=1 + devices)
    if not efa or efa_layouts_are_one(types):
        return addresses.node_addresses(devices)
    interfaces = max(instance_type.efa_interfaces for instance_type in types)
    return addresses.node_addresses(devices, interfaces=max(1, interfaces))


def system_node_addresses(spec: Spec) -> int:
    """Return the addresses of the maximum number of system nodes, which only EKS has."""
    if spec.cluster.ecs:
        return 0
    nodes = node_facts.MAXIMUM_NODES + node_facts.OVERFLOW_MAXIMUM_NODES
    return nodes * addresses.node_addresses(SYSTEM_PODS).total


@rule
def pools_fit_the_network(spec: Spec) -> Iterator[Finding]:
    """Check that the subnets have enough addresses for all nodes of all pools."""
    room = room_for_nodes(spec.network, spec.environment)
    if room is None:
        return
    on_ecs = spec.cluster.ecs is not None
    demands = [
        _Demand(
            index,
            pool.nodes.max,
            pool_node_addresses(known, efa=pool.efa, on_ecs=on_ecs).total,
            pool.availability_zone,
        )
        for index, pool in usable(spec.pools)
        if (known := pool.types)
    ]
    where = f"{room.zones} subnets of {room.in_a_zone}" if room.is_exact else "at most"
    system = system_node_addresses(spec)
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
    return models * batch.workers.max * ecs_hosts.TASKS_WHILE_REPLACED if batch.workers.ecs else 0


@rule
def tasks_fit_the_network(spec: Spec) -> Iterator[Finding]:
    """Check that the subnets have enough addresses for batch tasks in addition to all nodes."""
    room = room_for_nodes(spec.network, spec.environment)
    batch = spec.batch
    if room is None or batch is None or not (needed := task_addresses(batch)):
        return
    nodes = system_node_addresses(spec) + sum(
        pool.nodes.max * pool_node_addresses(known, efa=pool.efa, on_ecs=spec.cluster.ecs is not None).total
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
