"""How the workers of a deployment are replaced by those of a new version."""

from __future__ import annotations

from inference_blueprints.serving.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Rollout


def rollout(resolved: ResolvedWorkers) -> Rollout:
    """Return how workers are replaced: beside the old ones only where the pool has accelerators to spare.

    At least one may be missing, whatever the number: a disruption budget that allows none blocks every
    drain, and without surge a rollout could not move.

    Parameters
    ----------
    resolved
        The workers.
    """
    replicas = resolved.workers.replicas
    spare = _replicas_that_fit(resolved)
    surge = max(0, spare - _replicas_in_pool(resolved))
    tenth = max(1, replicas // 10)
    return Rollout(max_surge=min(surge, tenth), max_unavailable=tenth)


def _replicas_that_fit(resolved: ResolvedWorkers) -> int:
    """Return how many replicas the pool holds on the smallest of its instance types."""
    parts = min(replicas_per_node(each, resolved.accelerators_per_node) for each in resolved.instance_types)
    return resolved.pool.nodes.max * parts // resolved.nodes


def _replicas_in_pool(resolved: ResolvedWorkers) -> int:
    """Return all accelerators promised in the pool, in replicas of these workers, rounded up."""
    accelerators = sum(
        workers.replicas * workers.accelerators
        for model in resolved.blueprint.spec.models
        for deployment in model.deployments
        for workers in deployment.workers.values()
        if workers.pool == resolved.pool.name
    )
    return -(-accelerators // resolved.workers.accelerators)
