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
    """What batch takes of one quota of a service.

    Parameters
    ----------
    name
        The catalogue's word for the quota.
    service, quota_name, unit
        Whose it is, its name there, and what it counts.
    basis
        What of the design and the load is counted.
    used, quota
        How much is taken at the most, and how much there is by default in the region.
    adjustable
        Whether AWS raises it when asked.
    code
        In Service Quotas; empty where none is known.
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
        """Whether more is taken than there is."""
        return self.used > self.quota


@dataclass(frozen=True, slots=True)
class PoolAddresses:
    """What a pool takes of the network's IPv4 addresses.

    Parameters
    ----------
    pool
        Whose nodes; the platform's own are ``system nodes``.
    pods, prefixes, interfaces
        Of one node: pods with an address, /28 prefixes with the one kept ready, interfaces with an address.
    addresses_per_node
        Of one node, altogether.
    nodes_max
        Nodes at the most.
    nodes_in_a_subnet
        Nodes of this pool that one zone's subnet has room for beside nothing else.
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
        What is divided among how many zones.
    addresses_in_a_zone
        Left for nodes in a zone; for an existing VPC, whose subnets are unknown, its share of the range.
    is_exact
        Whether the subnets are known.
    needed, available
        For every node that may run, and in all zones.
    """

    cidr: str
    zones: int
    addresses_in_a_zone: int
    is_exact: bool
    needed: int
    available: int
    pools: tuple[PoolAddresses, ...]
