"""How IPv4 addresses are divided: what the network is built with, and what nodes and pods take of it.

Sources: Amazon VPC User Guide, "Subnet CIDR blocks"; Amazon EKS User Guide, "Assign more IP addresses to
nodes with prefixes" and "View networking requirements for VPC and subnets"; Elastic Load Balancing User
Guide, "Subnets for your load balancer"; amazon-vpc-cni-k8s, ``pkg/ipamd`` (a node with an address for each
pod gets no more).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

#: Range and zones of a new VPC that the blueprint does not describe.
DEFAULT_CIDR = "10.0.0.0/16"
DEFAULT_ZONES = 3
#: Each zone's public subnet holds its NAT gateway.
PUBLIC_SUBNET_PREFIX = 27

#: kubelet's limit on every node, whatever its interfaces; prefix delegation makes room for them.
PODS_PER_NODE = 110
#: A prefix is a /28, and one beyond those in use is kept ready.
ADDRESSES_PER_PREFIX = 16
WARM_PREFIXES = 1
#: Pods of daemon sets with an address of their own, at the most: secrets driver and provider, device plug-in,
#: what a platform team adds. The network plug-in, kube-proxy and the agents use the node's address.
DAEMON_PODS = 8

#: AWS keeps five addresses of a subnet. EKS asks for 16 free ones, and a load balancer for 8.
RESERVED_IN_A_SUBNET = 5
CONTROL_PLANE_IN_A_SUBNET = 16
LOAD_BALANCER_IN_A_SUBNET = 8


@dataclass(frozen=True, slots=True)
class NodeAddresses:
    """What one node takes of its subnet.

    Parameters
    ----------
    pods
        Pods with an address of their own.
    prefixes
        /28 prefixes, with the one that is kept ready.
    interfaces
        Network interfaces with a primary address.
    """

    pods: int
    prefixes: int
    interfaces: int

    @property
    def total(self) -> int:
        """Addresses altogether."""
        return self.interfaces + self.prefixes * ADDRESSES_PER_PREFIX


def node_addresses(serving_pods: int, *, interfaces: int = 1) -> NodeAddresses:
    """Return what a node takes for its serving pods and its daemons.

    Parameters
    ----------
    serving_pods
        Pods of models, or of controllers, on the node.
    interfaces
        Network interfaces with an address: one, and each EFA interface that is not ``efa-only``.
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
        How many zones, 2 to 4.

    Returns
    -------
    int
        Prefix length of each private subnet.
    """
    # The public subnets take less than one more private one would.
    return ipaddress.ip_network(cidr).prefixlen + zones.bit_length()


def addresses_for_nodes(cidr: str, zones: int, *, endpoints: int) -> int:
    """Return the addresses of one private subnet of a new VPC that are left for nodes.

    Parameters
    ----------
    cidr
        IPv4 range of the VPC.
    zones
        How many zones, 2 to 4.
    endpoints
        Interface endpoints, one address each.
    """
    size = 1 << (32 - private_subnet_prefix(cidr, zones))
    return size - RESERVED_IN_A_SUBNET - CONTROL_PLANE_IN_A_SUBNET - LOAD_BALANCER_IN_A_SUBNET - endpoints
