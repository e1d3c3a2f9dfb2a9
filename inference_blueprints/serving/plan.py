"""Blueprint to serving plan: the one place where engine arguments, ports and environment are decided."""

from __future__ import annotations

from inference_blueprints.catalog import InstanceType
from inference_blueprints.serving.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedDeployment, catalog_name, resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, Rollout, ServingPlan
from inference_blueprints.serving.weights import weights_mirror
from inference_blueprints.spec import types as spec


def build_plan(blueprint: spec.Blueprint) -> ServingPlan:
    """Compute every process that serves the blueprint's models.

    Pure: the same blueprint gives the same plan, and nothing outside the catalogue is read.

    Parameters
    ----------
    blueprint
        A blueprint that the loader accepted.

    Returns
    -------
    ServingPlan
        Models and deployments in the blueprint's order.

    Raises
    ------
    UnresolvedError
        If the blueprint names a pool, instance type, model or engine that there is not.
    """
    return ServingPlan(
        models=tuple(_model_plan(blueprint, index) for index in range(len(blueprint.spec.models)))
    )


def _model_plan(blueprint: spec.Blueprint, index: int) -> ModelPlan:
    """Plan one model with all its deployments."""
    model = blueprint.spec.models[index]
    deployments = tuple(
        _deployment_plan(resolve(blueprint, index, deployment))
        for deployment in range(len(model.deployments))
    )
    return ModelPlan(
        name=model.name,
        catalog_name=catalog_name(model.weights),
        deployments=deployments,
        weights_mirror=weights_mirror(model, deployments[0]),
    )


def _deployment_plan(resolved: ResolvedDeployment) -> DeploymentPlan:
    """Plan the processes of one deployment."""
    name = resolved.model.stack.chosen
    stack = STACKS[name]
    return DeploymentPlan(
        name=resolved.deployment.name,
        release=resolved.release,
        stack=name,
        framework=stack.FRAMEWORKS[resolved.model.engine.chosen],
        processes=stack.processes(resolved, _rollout(resolved)),
    )


def _rollout(resolved: ResolvedDeployment) -> Rollout:
    """Return how workers are replaced: beside the old ones only where the pool has accelerators to spare.

    At least one may be missing, whatever the number: a disruption budget that allows none blocks every
    drain, and without surge a rollout could not move.
    """
    replicas = resolved.deployment.aggregated.replicas
    spare = _replicas_that_fit(resolved.pool, resolved.instance_types, resolved.tensor_parallel_size)
    surge = max(0, spare - _replicas_in_pool(resolved))
    tenth = max(1, replicas // 10)
    return Rollout(max_surge=min(surge, tenth), max_unavailable=tenth)


def _replicas_that_fit(pool: spec.Pool, instance_types: tuple[InstanceType, ...], accelerators: int) -> int:
    """Return how many replicas the pool holds on the smallest of its instance types."""
    return pool.nodes.max * min(replicas_per_node(each, accelerators) for each in instance_types)


def _replicas_in_pool(resolved: ResolvedDeployment) -> int:
    """Return all accelerators promised in the pool, in replicas of this deployment, rounded up."""
    accelerators = sum(
        deployment.aggregated.replicas * deployment.aggregated.tensor_parallel_size
        for model in resolved.blueprint.spec.models
        for deployment in model.deployments
        if deployment.aggregated.pool == resolved.pool.name
    )
    return -(-accelerators // resolved.tensor_parallel_size)
