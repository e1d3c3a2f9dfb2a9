"""Converts a blueprint to a serving plan. Engine arguments, ports and environment are decided only here."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.serving.engines.kv_cache import kv_transfer
from inference_blueprints.serving.estimates.cache_tiers import shared_cache_plan
from inference_blueprints.serving.nodes.node_share import set_neighbours
from inference_blueprints.serving.nodes.node_systems import node_systems
from inference_blueprints.serving.resolved import (
    ResolvedWorkers,
    catalog_name,
    engine_release,
    resolve,
)
from inference_blueprints.serving.scaling.elastic_processes import elastic_processes
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.known_callers import behind_known_callers
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.serving.weights_loading import STREAMING_ENGINES, weights_mirror
from inference_blueprints.spec import types as spec


def build_plan(blueprint: spec.Blueprint) -> ServingPlan:
    """Compute all processes that serve the blueprint's models.

    The function is pure: equal blueprints give equal plans, and it reads only the blueprint and the
    catalogue.

    blueprint: A blueprint that the loader accepted.
    Returns: Models and deployments in the blueprint's order.
    Raises UnresolvedError if the blueprint names an unknown pool, instance type, model or engine, or if no
        operating system has what a pool needs.
    """
    models = [_model_plan(blueprint, index) for index in range(len(blueprint.spec.models))]
    return ServingPlan(
        models=set_neighbours(models, blueprint.spec.pools),
        node_systems=node_systems(blueprint),
        front_door=_front_door(blueprint, models),
    )


def _front_door(blueprint: spec.Blueprint, models: Sequence[ModelPlan]) -> DoorPlan | None:
    """Plan the front door, if there is one. Few blueprints have one, so its code is imported only then."""
    if blueprint.spec.front_door is None:
        return None
    from inference_blueprints.serving.front_door.door_plan import door_plan

    return door_plan(blueprint, models)


def _model_plan(blueprint: spec.Blueprint, index: int) -> ModelPlan:
    """Plan one model with all its deployments."""
    model = blueprint.spec.models[index]
    roles = [resolve(blueprint, index, deployment) for deployment in range(len(model.deployments))]
    deployments = tuple(map(_deployment_plan, roles))
    return ModelPlan(
        name=model.name,
        catalog_name=catalog_name(model.weights),
        deployments=deployments,
        weights_mirror=weights_mirror(
            model, deployments[0], blueprint.releases.engine(STREAMING_ENGINES[0]).address
        ),
        shared_kv_cache=shared_cache_plan(model, engine_release(blueprint, model).version),
        batch_headers=STACKS[model.stack.chosen].batch_headers(roles[0][0]),
    )


def _deployment_plan(roles: tuple[ResolvedWorkers, ...]) -> DeploymentPlan:
    """Plan the processes of one deployment."""
    any_role = roles[0]
    name = any_role.model.stack.chosen
    stack = STACKS[name]
    processes = stack.processes(roles)
    if any_role.blueprint.spec.front_door:
        entry, *others = processes
        host, port = stack.address_options
        processes = (behind_known_callers(entry, any_role, host_option=host, port_option=port), *others)
    return DeploymentPlan(
        name=any_role.deployment.name,
        release=any_role.release,
        model=any_role.model.name,
        stack=name,
        chart=stack.chart,
        service_account=stack.service_account(any_role.release),
        framework=stack.frameworks[any_role.model.engine.chosen],
        processes=elastic_processes(processes, roles),
        kv_transfer=kv_transfer(any_role),
        picker=stack.picker(roles),
        is_waited_for=any_role.traffic.is_waited_for,
    )
