"""What the capacity shift of a platform moves, from the blueprint and its plan."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.serving.nodes.ecs_capacity import managed_pools
from inference_blueprints.serving.nodes.node_share import pool_quota
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.scaling.worker_load import worker_load
from inference_blueprints.serving.types import DeploymentPlan, ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_catalog.charts import charts
from inference_contracts.batch_limits import SHARDS_PER_WORKER
from inference_contracts.ecs_names import service_name
from inference_contracts.shift_names import ShiftConfiguration, ShiftedQueue, ShiftedWorkers


def shift_configuration_of(blueprint: Blueprint, plan: ServingPlan) -> ShiftConfiguration | None:
    """Return what the capacity shift moves. None if the blueprint has no such section, or no batch.

    blueprint: A valid blueprint.
    """
    shift, batch = blueprint.spec.capacity_shift, blueprint.spec.batch
    if shift is None or batch is None:
        return None
    on_ecs = blueprint.spec.cluster.chosen == "ecs"
    managed = managed_pools(blueprint, plan) if on_ecs else frozenset[str]()
    workers = tuple(
        each
        for model_index, model in enumerate(plan.models)
        for index, deployment in enumerate(model.deployments)
        for each in _shifted_workers(deployment, resolve(blueprint, model_index, index), managed)
    )
    elastic = {each.model for each in workers}
    models = {queue.model for queue in batch.queues}
    return ShiftConfiguration(
        action=shift.action,
        safety_percent=shift.safety_percent,
        reclaim_seconds=shift.reclaim_seconds,
        workers=workers,
        queues=tuple(_shifted_queues(blueprint, plan, workers)),
        batch_places=dict.fromkeys(sorted(models & elastic), batch.workers.max * SHARDS_PER_WORKER),
    )


def _shifted_workers(
    deployment: DeploymentPlan, roles: tuple[ResolvedWorkers, ...], managed: frozenset[str]
) -> Iterator[ShiftedWorkers]:
    """Yield the elastic workers of a deployment. Pools in `managed` are those of Managed Instances.

    Demand is counted in requests in flight of the release, which the workers that decode hold. Prefill
    workers share it by their number, so that the floors of both roles keep the ratio of the ranges.
    """
    decoding = roles[-1]
    carried = worker_load(decoding).requests * decoding.workers.maximum
    of_roles = {process.name: role for process, role in zip(deployment.workers, roles, strict=True)}
    for process in deployment.processes:
        if process.scaling is None:
            continue
        resolved = of_roles[process.name]
        part = "vllm-" if deployment.stack == "llmD" else ""
        yield ShiftedWorkers(
            # The names of ScaledObjects in the charts of both stacks, and of services on ECS.
            name=service_name(
                deployment.release, f"{part}{process.name}", managed=resolved.pool.name in managed
            ),
            namespace=charts()[deployment.chart].namespace,
            release=deployment.release,
            role=process.role,
            model=deployment.model,
            pool=resolved.pool.name,
            least=process.scaling.least,
            most=process.scaling.most,
            capacity=carried / process.scaling.most,
            accelerators=resolved.workers.accelerators,
        )


def _shifted_queues(
    blueprint: Blueprint, plan: ServingPlan, workers: tuple[ShiftedWorkers, ...]
) -> Iterator[ShiftedQueue]:
    """Yield the pools with elastic workers, accelerators and a queue for jobs."""
    if blueprint.spec.queueing is None or blueprint.spec.queueing.kueue is None:
        return
    for pool in blueprint.spec.pools:
        quota = pool_quota(pool, plan).accelerators
        elastic = sum(each.most * each.accelerators for each in workers if each.pool == pool.name)
        if quota is not None and quota.resource_name and elastic:
            yield ShiftedQueue(
                pool=pool.name,
                resource=quota.resource_name,
                accelerators=quota.count + elastic,
                quota=quota.count,
            )
