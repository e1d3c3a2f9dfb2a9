"""What AWS and the network limit, in figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """vCPUs that one of EC2's quotas has to allow.

    Parameters
    ----------
    code, name
        In Service Quotas, service ``ec2``; empty where none is known.
    purchase
        What it counts: the blueprint's word.
    vcpu_used, vcpu_max
        For the used nodes, and for as many as the blueprint allows.
    pools
        Whose nodes; the platform's own are ``system nodes``.
    """

    code: str
    name: str
    purchase: str
    vcpu_used: int
    vcpu_max: int
    pools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServiceQuotaUse:
    """Use of one service quota by batch.

    Parameters
    ----------
    name
        Key of the quota in the catalogue.
    service, quota_name, unit
        Service, AWS's name of the quota, and its unit.
    basis
        What is counted.
    used, quota
        Maximum use, and the default quota of the region.
    adjustable
        Whether AWS raises it on request.
    code
        Code in Service Quotas; empty if unknown.
    """

    name: str
    service: str
    quota_name: str
    unit: str
    basis: str
    used: float
    quota: float
    adjustable: bool
    code: str

    @property
    def share(self) -> float:
        """Used over quota."""
        return self.used / self.quota

    @property
    def is_exceeded(self) -> bool:
        """Whether the use is above the quota."""
        return self.used > self.quota


@dataclass(frozen=True, slots=True)
class PoolAddresses:
    """Use of the network's IPv4 addresses by a pool.

    Parameters
    ----------
    pool
        Whose nodes; the platform's own are ``system nodes``.
    pods, prefixes, interfaces
        Per node: pods with an address, /28 prefixes including a spare one, interfaces with an address.
    addresses_per_node
        Addresses per node in total.
    nodes_max
        Maximum number of nodes.
    nodes_in_a_subnet
        Nodes of this pool that fit one zone's subnet if it is otherwise empty.
    """

    pool: str
    pods: int
    prefixes: int
    interfaces: int
    addresses_per_node: int
    nodes_max: int
    nodes_in_a_subnet: int


@dataclass(frozen=True, slots=True)
class AddressUse:
    """The network's IPv4 addresses.

    Parameters
    ----------
    cidr, zones
        The range, and the number of zones that share it.
    addresses_in_a_zone
        Addresses for nodes per zone; in an existing VPC, whose subnets are unknown, its share of the range.
    is_exact
        Whether the subnets are known.
    needed, available
        Addresses of the maximum number of nodes, and available addresses in all zones.
    """

    cidr: str
    zones: int
    addresses_in_a_zone: int
    is_exact: bool
    needed: int
    available: int
    pools: tuple[PoolAddresses, ...]
