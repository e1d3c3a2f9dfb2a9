"""Which workers share nodes, and the share of a node for one replica."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import (
    Accelerators,
    DeploymentPlan,
    ModelPlan,
    Neighbour,
    Process,
    ServingPlan,
    Toleration,
)
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.types import Pool
from inference_catalog import InstanceType, node_facts
from inference_catalog.node_facts import efa_share
from inference_catalog.operating_system import KUBE_RESERVED_MIB
from inference_contracts.records import dataclass

# Chooses the workers that share nodes instead of being spread, so that their pool's nodes hold all of them.
#
# The default scheduler spreads pods. Of twelve workers with one accelerator, six go to each of two nodes with
# eight, and a worker with four accelerators then fits on neither. EKS does not allow configuration of the
# scheduler, but a pod may prefer nodes with certain other pods: each neighbour adds its weight to a node's
# score, and the preferences of neighbours count as much as the pod's own. With the product of both sizes as
# weight, a node's score for a pod is proportional to the accelerators in use. So the scheduler takes the
# fullest node with enough room (best fit), in any order of arrival. That wastes nothing if sizes are powers
# of two, as on NVIDIA's types.
#
# Source: ``pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`` and ``default_plugins.go`` of
# kubernetes/kubernetes 1.36: affinity weighs twice as much as the preference for the emptiest node, and
# scores are normalised over the nodes with enough room.


def set_neighbours(models: Sequence[ModelPlan], pools: Sequence[spec.Pool]) -> tuple[ModelPlan, ...]:
    """Set the neighbours of every worker in pools where spreading could leave a worker without a node.

    Only the size of a process counts, not its purpose: roles, deployments and models that share a pool are
    packed together.

    models: Plans of all models, with all processes.
    Returns: The same plans, with neighbours.
    """
    neighbours = {pool.name: _neighbours(pool, _sizes(models, pool.name)) for pool in pools}

    def complete(deployment: DeploymentPlan) -> DeploymentPlan:
        processes = tuple(_with_neighbours(process, neighbours) for process in deployment.processes)
        return dataclasses.replace(deployment, processes=processes)

    return tuple(
        dataclasses.replace(model, deployments=tuple(map(complete, model.deployments))) for model in models
    )


def strands(workers: Mapping[int, int], *, nodes: int, accelerators_per_node: int) -> bool:
    """Whether a worker may find no node with enough room, depending on the nodes of the others.

    For each size, nodes are counted in places of that size. A node loses one place to the first smaller
    worker, and another one whenever the smaller workers fill a place. Workers of a multiple of the size take
    whole places.

    workers: Number of workers by accelerators per worker.
    nodes: Number of nodes that they share.
    accelerators_per_node: A multiple of each size.
    """
    for size in workers:
        whole = sum(other // size * number for other, number in workers.items() if other % size == 0)
        loose = {other: number for other, number in workers.items() if other % size}
        touched = min(nodes, sum(loose.values()))
        accelerators = sum(other * number for other, number in loose.items())
        lost = touched + (accelerators - touched) // size
        if whole + lost > nodes * accelerators_per_node // size:
            return True
    return False


def _sizes(models: Sequence[ModelPlan], pool: str) -> Mapping[int, int]:
    """Count the workers of a pool by their accelerators."""
    sizes: Counter[int] = Counter()
    for model in models:
        for deployment in model.deployments:
            for process in deployment.processes:
                if process.pool == pool and process.resources.accelerators:
                    sizes[process.resources.accelerators.count] += process.pods_together
    return sizes


def _neighbours(pool: spec.Pool, sizes: Mapping[int, int]) -> Mapping[int, tuple[Neighbour, ...]]:
    """Return the neighbours of each size of worker; empty if spreading is harmless.

    The check assumes the fewest nodes that hold all workers, which is what Karpenter starts. More nodes only
    give more room.
    """
    per_node = min(each.accelerator_count for each in pool.types)
    nodes = max(pool.nodes.min, -(-sum(size * count for size, count in sizes.items()) // max(per_node, 1)))
    if not strands(sizes, nodes=nodes, accelerators_per_node=per_node):
        return {}
    return {
        size: tuple(Neighbour(other, size * other) for other in sorted(sizes) if size + other <= per_node)
        for size in sizes
    }


def _with_neighbours(
    process: Process, neighbours: Mapping[str, Mapping[int, tuple[Neighbour, ...]]]
) -> Process:
    if process.pool is None or process.resources.accelerators is None:
        return process
    of_pool = neighbours[process.pool]
    return dataclasses.replace(process, neighbours=of_pool.get(process.resources.accelerators.count, ()))


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
    value, effect = node_facts.ACCELERATOR_TAINT_VALUE, node_facts.ACCELERATOR_TAINT_EFFECT
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
    return node_facts.NEURON_SCHEDULER if shared and resolved.accelerator.manufacturer == "aws" else None


# What models leave free of a pool, and the images that its nodes need.


def pool_images(plan: ServingPlan, pool: str) -> tuple[str, ...]:
    """Return the images of the processes on a pool's nodes, sorted, without duplicates.

    The plan does not contain the images of Kubernetes' own pods, which are small.
    """
    images = {
        image
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
        if process.pool == pool
        for image in (process.image, *(sidecar.image for sidecar in process.sidecars))
    }
    return tuple(sorted(images))


def images_digest(images: Iterable[str]) -> str:
    """Return an identifier of a set of images: 32 hexadecimal digits of a SHA-256.

    images: Image references, in any order.
    """
    import hashlib

    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class PoolQuota:
    """Resources of a pool that all jobs together may request."""

    cpu: int
    memory_mib: int
    accelerators: Accelerators | None
    """Devices, possibly 0; None for a pool without accelerators."""

    @property
    def resources(self) -> Mapping[str, str]:
        """The quota in Kubernetes' form: quantity by resource."""
        quota = {"cpu": str(self.cpu), "memory": f"{self.memory_mib}Mi"}
        if self.accelerators and self.accelerators.resource_name:
            quota[self.accelerators.resource_name] = str(self.accelerators.count)
        return quota


def pool_quota(pool: Pool, plan: ServingPlan) -> PoolQuota:
    """Return the capacity of a pool at its maximum, minus the requests of the models' workers on it.

    All nodes count as the pool's largest instance type, as in Karpenter's limits: no more jobs can be
    admitted than it may start. If it starts smaller nodes, pods of admitted jobs wait for each other.
    """
    types = pool.types
    capacities = [node_capacity(each) for each in types]
    workers = list(_workers(pool, plan))

    def left(a_node: int, taken: int) -> int:
        return max(0, pool.nodes.max * a_node - taken)

    resource = types[0].device_resource
    devices = left(
        max(each.device_count for each in types),
        sum(each.pods_together * each.resources.devices for each in workers),
    )
    return PoolQuota(
        cpu=left(
            max(each.cpu for each in capacities),
            sum(each.pods_together * each.resources.cpu for each in workers),
        ),
        memory_mib=left(
            max(each.memory_mib for each in capacities),
            sum(each.pods_together * each.resources.memory_mib for each in workers),
        ),
        accelerators=Accelerators(resource, devices) if resource else None,
    )


def _workers(pool: Pool, plan: ServingPlan) -> Iterator[Process]:
    """Yield the models' processes that run on the pool."""
    for model in plan.models:
        for deployment in model.deployments:
            yield from (process for process in deployment.processes if process.pool == pool.name)
