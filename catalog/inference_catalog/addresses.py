"""IPv4 addresses: the subnets of the network, and the addresses that nodes and pods need.

Sources: Amazon VPC User Guide, "Subnet CIDR blocks"; Amazon EKS User Guide, "Assign more IP addresses to
nodes with prefixes" and "View networking requirements for VPC and subnets"; Elastic Load Balancing User
Guide, "Subnets for your load balancer"; amazon-vpc-cni-k8s, ``pkg/ipamd`` (a node with an address for each
pod gets no more).
"""

from __future__ import annotations

import ipaddress

from inference_contracts.records import dataclass

#: Range and zones of a new VPC, if the blueprint does not describe one.
DEFAULT_CIDR = "10.0.0.0/16"
DEFAULT_ZONES = 3
#: Each zone's public subnet holds its NAT gateway.
PUBLIC_SUBNET_PREFIX = 27

#: kubelet's pod limit on every node, regardless of its interfaces. Prefix delegation provides the addresses.
PODS_PER_NODE = 110
#: A prefix is a /28. One free prefix is kept ready.
ADDRESSES_PER_PREFIX = 16
WARM_PREFIXES = 1
#: Maximum number of daemon set pods with their own address: secrets driver and provider, device plug-in, and
#: those of a platform team. The network plug-in, kube-proxy and the agents use the node's address.
DAEMON_PODS = 8

#: AWS reserves five addresses of a subnet. EKS requires 16 free ones, and a load balancer 8.
RESERVED_IN_A_SUBNET = 5
CONTROL_PLANE_IN_A_SUBNET = 16
LOAD_BALANCER_IN_A_SUBNET = 8


@dataclass(frozen=True, slots=True)
class NodeAddresses:
    """Addresses that one node needs in its subnet."""

    pods: int
    """Pods with their own address."""
    prefixes: int
    """/28 prefixes, including the one that is kept ready."""
    interfaces: int
    """Network interfaces with a primary address."""

    @property
    def total(self) -> int:
        """Total number of addresses."""
        return self.interfaces + self.prefixes * ADDRESSES_PER_PREFIX


def node_addresses(serving_pods: int, *, interfaces: int = 1) -> NodeAddresses:
    """Return the addresses that a node needs for its serving pods and its daemon pods.

    Parameters
    ----------
    serving_pods
        Number of pods of models or controllers on the node.
    interfaces
        Number of interfaces with an address: the primary one, and each EFA interface that is not
        ``efa-only``.
    """
    pods = min(PODS_PER_NODE, serving_pods + DAEMON_PODS)
    in_use = -(-pods // ADDRESSES_PER_PREFIX)
    is_full = in_use * ADDRESSES_PER_PREFIX >= PODS_PER_NODE
    return NodeAddresses(pods, in_use + (0 if is_full else WARM_PREFIXES), interfaces)


def private_subnet_prefix(cidr: str, zones: int) -> int:
    """Return the prefix length of the largest equal private subnets that leave room for the public ones.

    Parameters
    ----------
    cidr
        IPv4 range of the VPC.
    zones
        Number of zones, 2 to 4.

    Returns
    -------
    int
        Prefix length of each private subnet.
    """
    # The public subnets together need less than one more private subnet.
    return ipaddress.ip_network(cidr).prefixlen + zones.bit_length()


def addresses_for_nodes(cidr: str, zones: int, *, endpoints: int) -> int:
    """Return the addresses of one private subnet of a new VPC that are available to nodes.

    Parameters
    ----------
    cidr
        IPv4 range of the VPC.
    zones
        Number of zones, 2 to 4.
    endpoints
        Number of interface endpoints, one address each.
    """
    size = 1 << (32 - private_subnet_prefix(cidr, zones))
    return size - RESERVED_IN_A_SUBNET - CONTROL_PLANE_IN_A_SUBNET - LOAD_BALANCER_IN_A_SUBNET - endpoints
