"""Blueprint to serving plan: the one place where engine arguments, ports and environment are decided."""

from __future__ import annotations

from inference_blueprints.serving.kv_transfer import kv_transfer
from inference_blueprints.serving.packing import packed
from inference_blueprints.serving.resolved import ResolvedWorkers, catalog_name, resolve
from inference_blueprints.serving.shared_cache import shared_cache_plan
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, ServingPlan
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
    models = [_model_plan(blueprint, index) for index in range(len(blueprint.spec.models))]
    return ServingPlan(models=packed(models, blueprint.spec.pools))


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
        shared_kv_cache=shared_cache_plan(model, blueprint.releases.engine(model.engine.chosen).version),
    )


def _deployment_plan(roles: tuple[ResolvedWorkers, ...]) -> DeploymentPlan:
    """Plan the processes of one deployment."""
    any_role = roles[0]
    name = any_role.model.stack.chosen
    stack = STACKS[name]
    return DeploymentPlan(
        name=any_role.deployment.name,
        release=any_role.release,
        model=any_role.model.name,
        stack=name,
        chart=stack.CHART,
        service_account=stack.service_account(any_role.release),
        framework=stack.FRAMEWORKS[any_role.model.engine.chosen],
        processes=stack.processes(roles),
        kv_transfer=kv_transfer(any_role),
        picker=stack.picker(roles),
    )
