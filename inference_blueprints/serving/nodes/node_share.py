"""Computes the share of a node for one replica, after the system and the daemon sets."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Toleration
from inference_catalog import InstanceType, placement
from inference_catalog.efa import efa_share
from inference_catalog.operating_system import KUBE_RESERVED_MIB

# Karpenter subtracts this share of a type's memory before it checks whether a pod fits
# (`vmMemoryOverheadPercent`, karpenter.sh documentation, "Settings").
_VM_MEMORY_OVERHEAD = 0.075
# kubelet's default hard eviction threshold, `memory.available<100Mi`.
_EVICTION_MIB = 100
# Memory for vpc-cni, kube-proxy, the pod identity agent, the node monitoring agent and a log shipper.
_DAEMON_SETS_MIB = 1024
_DAEMON_SETS_AND_KUBELET_CPU = 1


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A replica's part of a node."""

    cpu: int
    memory_mib: int
    """Memory in MiB, a multiple of 1024."""


def replicas_per_node(instance_type: InstanceType, accelerators: int) -> int:
    """Return the number of replicas with this many accelerators that fit on one node."""
    return instance_type.accelerator_count // accelerators


def node_capacity(instance_type: InstanceType) -> NodeShare:
    """Return the resources for all replicas of a node together, after the system and the daemon sets."""
    usable_mib = instance_type.memory_mib * (1 - _VM_MEMORY_OVERHEAD)
    usable_mib -= KUBE_RESERVED_MIB + _EVICTION_MIB + _DAEMON_SETS_MIB
    return NodeShare(instance_type.vcpu - _DAEMON_SETS_AND_KUBELET_CPU, int(usable_mib))


def node_share(types: tuple[InstanceType, ...], accelerators: int) -> NodeShare:
    """Return the resources that a replica can request on every instance type of its pool.

    Accelerators are the expensive part of a node. So the host's memory and vCPUs are divided by the number of
    replicas that its accelerators allow. The smallest share over the pool's types fits all of them.

    types: The pool's types, each with at least `accelerators` devices.
    accelerators: Devices of one replica.
    Returns: vCPUs and memory of one replica; at least 1 vCPU and 1024 MiB.
    """
    cpus, memories = [], []
    for instance_type in types:
        replicas = max(1, replicas_per_node(instance_type, accelerators))
        capacity = node_capacity(instance_type)
        memories.append(capacity.memory_mib // replicas)
        cpus.append(capacity.cpu // replicas)
    return NodeShare(cpu=max(1, min(cpus)), memory_mib=max(1024, min(memories) // 1024 * 1024))


def efa_interfaces(resolved: ResolvedWorkers) -> int:
    """Return the EFA interfaces for a worker's accelerators on a node; 0 without EFA.

    The smallest share over the pool's types fits all of them, and gives each worker of a node the same
    number.
    """
    if not resolved.pool.efa:
        return 0
    return min(efa_share(each, resolved.accelerators_per_node) for each in resolved.types)


def tolerations(resolved: ResolvedWorkers) -> tuple[Toleration, ...]:
    """Return the tolerations of a worker: for the taint of its pool's devices, and the user's own."""
    resource = resolved.accelerator.resource_name
    value, effect = placement.ACCELERATOR_TAINT_VALUE, placement.ACCELERATOR_TAINT_EFFECT
    of_accelerators = (Toleration(resource, value, effect),) if resource else ()
    own = (Toleration(taint.key, taint.value, taint.effect) for taint in resolved.pool.taints)
    return (*of_accelerators, *own)


def scheduler(resolved: ResolvedWorkers) -> str | None:
    """Return the scheduler of a worker's pods: one that knows which Neuron devices of a node are connected.

    The cluster's own scheduler only counts devices. That is enough for a worker with all devices of its node
    (``deploy/infrastructure/scheduler.rst`` of aws-neuron/aws-neuron-sdk).
    """
    devices = resolved.accelerators_per_node
    shared = any(each.accelerator_count > devices for each in resolved.types)
    return placement.NEURON_SCHEDULER if shared and resolved.accelerator.manufacturer == "aws" else None
