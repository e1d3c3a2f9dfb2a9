"""Computes how workers of a new version replace the old ones."""

from __future__ import annotations

from inference_blueprints.serving.nodes.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Rollout


def rollout(resolved: ResolvedWorkers) -> Rollout:
    """Return the rollout settings: new workers start beside old ones only if the pool has spare accelerators.

    At least one worker may always be missing: a disruption budget of 0 blocks every drain, and without surge
    a rollout could not progress. Elastic workers get the settings of their smallest
    number.
    """
    replicas = resolved.workers.minimum
    spare = _replicas_that_fit(resolved)
    surge = max(0, spare - _replicas_in_pool(resolved))
    tenth = max(1, replicas // 10)
    return Rollout(max_surge=min(surge, tenth), max_unavailable=tenth)


def _replicas_that_fit(resolved: ResolvedWorkers) -> int:
    """Return the number of replicas that fit in the pool on the smallest of its instance types."""
    parts = min(replicas_per_node(each, resolved.accelerators_per_node) for each in resolved.types)
    return resolved.pool.nodes.max * parts // resolved.nodes


def _replicas_in_pool(resolved: ResolvedWorkers) -> int:
    """Return all accelerators requested in the pool, in units of these workers, rounded up."""
    accelerators = sum(
        workers.maximum * workers.accelerators
        for model in resolved.blueprint.spec.models
        for deployment in model.deployments
        for workers in deployment.workers.values()
        if workers.pool == resolved.pool.name
    )
    return -(-accelerators // resolved.workers.accelerators)
