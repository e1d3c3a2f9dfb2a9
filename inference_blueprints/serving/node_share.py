"""What one replica needs of its node, and may take after the system and the daemon sets had theirs."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.catalog import InstanceType, placement
from inference_blueprints.catalog.addresses import PODS_PER_NODE
from inference_blueprints.catalog.efa import efa_share
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Toleration

# Karpenter takes this share off a type's memory before it believes that a pod fits
# (`vmMemoryOverheadPercent`, karpenter.sh documentation, "Settings").
_VM_MEMORY_OVERHEAD = 0.075
# kubelet's reservation on Bottlerocket: 255 MiB and 11 MiB for each pod that kubelet is told it may hold,
# whatever the type's interfaces would give (Karpenter, `kubeReservedResources`, reckons the same).
_KUBE_RESERVED_MIB = 255
_KUBE_RESERVED_MIB_PER_POD = 11
# kubelet's default hard eviction threshold, `memory.available<100Mi`.
_EVICTION_MIB = 100
# Room for vpc-cni, kube-proxy, the pod identity agent, the node monitoring agent and a log shipper.
_DAEMON_SETS_MIB = 1024
_DAEMON_SETS_AND_KUBELET_CPU = 1


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A replica's part of a node.

    Parameters
    ----------
    cpu
        Whole vCPUs.
    memory_mib
        Memory in MiB; a replica's is a multiple of 1024.
    """

    cpu: int
    memory_mib: int


def replicas_per_node(instance_type: InstanceType, accelerators: int) -> int:
    """Return how many replicas with that many accelerators one node holds."""
    return instance_type.accelerator_count // accelerators


def node_capacity(instance_type: InstanceType) -> NodeShare:
    """Return what all replicas of a node can request together, after the system and the daemon sets.

    Parameters
    ----------
    instance_type
        The node's type.
    """
    kube_reserved = _KUBE_RESERVED_MIB + _KUBE_RESERVED_MIB_PER_POD * PODS_PER_NODE
    usable_mib = instance_type.memory_mib * (1 - _VM_MEMORY_OVERHEAD)
    usable_mib -= kube_reserved + _EVICTION_MIB + _DAEMON_SETS_MIB
    return NodeShare(instance_type.vcpu - _DAEMON_SETS_AND_KUBELET_CPU, int(usable_mib))


def node_share(instance_types: tuple[InstanceType, ...], accelerators: int) -> NodeShare:
    """Return what a replica can request on every instance type of its pool.

    Accelerators are what a node is paid for, so the host's memory and processors are divided among as many
    replicas as its accelerators allow; the smallest such share of the pool's types fits all of them.

    Parameters
    ----------
    instance_types
        The pool's types, each with at least `accelerators` devices.
    accelerators
        Devices of one replica.

    Returns
    -------
    NodeShare
        vCPUs and memory of one replica; at least 1 vCPU and 1024 MiB.
    """
    cpus, memories = [], []
    for instance_type in instance_types:
        replicas = max(1, replicas_per_node(instance_type, accelerators))
        capacity = node_capacity(instance_type)
        memories.append(capacity.memory_mib // replicas)
        cpus.append(capacity.cpu // replicas)
    return NodeShare(cpu=max(1, min(cpus)), memory_mib=max(1024, min(memories) // 1024 * 1024))


def efa_interfaces(resolved: ResolvedWorkers) -> int:
    """Return the EFA interfaces that go with a worker's accelerators of a node; 0 without EFA.

    The smallest share of the pool's types fits all of them, and leaves each of a node's workers as many.

    Parameters
    ----------
    resolved
        The deployment.
    """
    if not resolved.pool.efa:
        return 0
    return min(efa_share(each, resolved.accelerators_per_node) for each in resolved.instance_types)


def tolerations(resolved: ResolvedWorkers) -> tuple[Toleration, ...]:
    """Return what a worker tolerates: the taint of its pool's accelerators, and the user's own.

    Parameters
    ----------
    resolved
        The deployment.
    """
    of_accelerators = Toleration(
        resolved.accelerator.resource_name,
        placement.ACCELERATOR_TAINT_VALUE,
        placement.ACCELERATOR_TAINT_EFFECT,
    )
    own = (Toleration(taint.key, taint.value, taint.effect) for taint in resolved.pool.taints)
    return (of_accelerators, *own)
