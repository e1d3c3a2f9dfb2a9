"""Converts a blueprint to a serving plan. Engine arguments, ports and environment are decided only here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.serving.engines.kv_cache import kv_transfer
from inference_blueprints.serving.estimates.cache_tiers import shared_cache_plan
from inference_blueprints.serving.nodes.node_share import set_neighbours
from inference_blueprints.serving.resolved import (
    ResolvedWorkers,
    UnresolvedError,
    catalog_name,
    engine_release,
    resolve,
)
from inference_blueprints.serving.scaling.elastic_processes import elastic_processes
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.engine_process import pinned_image
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, ServingPlan
from inference_blueprints.serving.weights_loading import STREAMING_ENGINES, weights_mirror
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.invalid_values import usable
from inference_catalog.catalogue import shipped
from inference_catalog.operating_system import OperatingSystem, SystemName


def node_systems(blueprint: spec.Blueprint) -> Mapping[str, SystemName]:
    """Return the operating system of each pool by the pool's name.

    Raises UnresolvedError if no operating system has what a pool needs.
    """
    paired = {workers.pool.name for workers in paired_workers(blueprint)}
    systems = {}
    for pool in blueprint.spec.pools:
        system = pool_system(pool, paired=pool.name in paired)
        if system is None:
            raise UnresolvedError(f"no operating system has what pool '{pool.name}' needs")
        systems[pool.name] = system.name
    return systems


def pool_system(pool: spec.Pool, *, paired: bool) -> OperatingSystem | None:
    """Return the first operating system of the catalogue that has what a pool needs; None if none has.

    paired: Whether the pool has paired workers.
    """
    starts_from_snapshot = pool.image_acceleration.ebs_snapshot is not None
    for system in shipped().operating_systems.values():
        if (
            (system.pairs_efa_with_gpus or not paired)
            and (system.starts_from_snapshot or not starts_from_snapshot)
            and not unbootable_families(pool, system)
        ):
            return system
    return None


def unbootable_families(pool: spec.Pool, system: OperatingSystem) -> list[str]:
    """Return the families of a pool's instance types that do not boot an operating system."""
    families = dict.fromkeys(each.family for each in pool.types)
    return [family for family in families if family in system.unbootable_families]


def paired_workers(blueprint: spec.Blueprint) -> Iterator[ResolvedWorkers]:
    """Yield the workers that need the EFA interfaces beside their own GPUs.

    These are workers that move KV cache over EFA and use a part of a node: NIXL maps each GPU to the EFA
    devices beside it (``src/plugins/libfabric/README.md`` of ai-dynamo/nixl), and the pod may have others. A
    worker with all GPUs of a node has all its interfaces, too.
    """
    for model_index, model in usable(blueprint.spec.models):
        for deployment_index, _ in usable(model.deployments):
            try:
                roles = resolve(blueprint, model_index, deployment_index)
            except UnresolvedError:
                continue
            yield from (workers for workers in roles if _is_paired(workers))


def _is_paired(workers: ResolvedWorkers) -> bool:
    """Whether workers move KV cache over EFA and leave GPUs of a node to others."""
    return kv_transfer(workers) == "libfabric" and any(
        instance_type.accelerator_count > workers.accelerators_per_node for instance_type in workers.types
    )


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
        models=set_neighbours(models, blueprint.spec.pools), node_systems=node_systems(blueprint)
    )


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
            model, deployments[0], pinned_image(blueprint.releases.engine(STREAMING_ENGINES[0]))
        ),
        shared_kv_cache=shared_cache_plan(model, engine_release(blueprint, model).version),
        batch_headers=STACKS[model.stack.chosen].batch_headers(roles[0][0]),
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
        chart=stack.chart,
        service_account=stack.service_account(any_role.release),
        framework=stack.frameworks[any_role.model.engine.chosen],
        processes=elastic_processes(stack.processes(roles), roles),
        kv_transfer=kv_transfer(any_role),
        picker=stack.picker(roles),
        is_waited_for=any_role.traffic.is_waited_for,
    )
