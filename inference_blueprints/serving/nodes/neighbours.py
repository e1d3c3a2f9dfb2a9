"""Chooses the workers that share nodes instead of being spread, so that their pool's nodes hold all of them.

The default scheduler spreads pods. Of twelve workers with one accelerator, six go to each of two nodes with
eight, and a worker with four accelerators then fits on neither. EKS does not allow configuration of the
scheduler, but a pod may prefer nodes with certain other pods: each neighbour adds its weight to a node's
score, and the preferences of neighbours count as much as the pod's own. With the product of both sizes as
weight, a node's score for a pod is proportional to the accelerators in use. So the scheduler takes the
fullest node with enough room (best fit), in any order of arrival. That wastes nothing if sizes are powers of
two, as on NVIDIA's types.

Source: ``pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`` and ``default_plugins.go`` of
kubernetes/kubernetes 1.36: affinity weighs twice as much as the preference for the emptiest node, and scores
are normalised over the nodes with enough room.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, Neighbour, Process
from inference_blueprints.spec import types as spec


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
                    sizes[process.resources.accelerators.count] += process.pods
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
