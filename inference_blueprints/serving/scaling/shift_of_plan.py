"""What the capacity shift of a platform moves, from the blueprint and its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from inference_blueprints.serving.estimates.worker_start import worker_start
from inference_blueprints.serving.nodes.ecs_capacity import managed_pools
from inference_blueprints.serving.nodes.node_share import pool_quota
from inference_blueprints.serving.performance import role_capacity
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.scaling.worker_load import worker_load
from inference_blueprints.serving.traffic import serving_deployments
from inference_blueprints.serving.types import DeploymentPlan, Process, ServingPlan
from inference_blueprints.spec.sections.pools.shared import shared_pools
from inference_blueprints.spec.types import Blueprint, CapacityShift, Spec
from inference_blueprints.spec.wording import Path
from inference_catalog.charts import charts
from inference_contracts.batch_limits import SHARDS_PER_WORKER
from inference_contracts.ecs_names import service_name
from inference_contracts.records import dataclass
from inference_contracts.shift_names import (
    SharedPool,
    ShiftConfiguration,
    ShiftedQueue,
    ShiftedWorkers,
)
from inference_contracts.units import SECONDS_PER_HOUR

#: Time between two runs of the capacity shift.
_RUN_SECONDS: Final = 60


def shift_configuration_of(blueprint: Blueprint, plan: ServingPlan) -> ShiftConfiguration | None:
    """Return what the capacity shift moves. None if the blueprint has no such section, or no batch.

    blueprint: A valid blueprint.
    """
    shift, batch = blueprint.spec.capacity_shift, blueprint.spec.batch
    if shift is None or batch is None:
        return None
    on_ecs = blueprint.spec.cluster.chosen == "ecs"
    managed = managed_pools(blueprint, plan) if on_ecs else frozenset[str]()
    handovers = handovers_of(blueprint, plan)
    workers = tuple(
        each
        for model_index, model in enumerate(plan.models)
        for index, deployment in enumerate(model.deployments)
        for each in _shifted_workers(deployment, resolve(blueprint, model_index, index), managed, handovers)
    )
    batch_releases = _batch_releases(blueprint.spec, plan)
    places = batch.workers.max * SHARDS_PER_WORKER
    fixed = _fixed_places(blueprint, plan, workers, batch_releases, places)
    models = {each.model for each in workers if each.release in batch_releases.get(each.model, ())}
    return ShiftConfiguration(
        action=shift.action,
        safety_percent=shift.safety_percent,
        reclaim_seconds=shift.reclaim_seconds,
        workers=workers,
        queues=tuple(_shifted_queues(blueprint, plan, workers)),
        shared_pools=tuple(_shared_pools(blueprint, workers)),
        batch_places={model: places - fixed.get(model, 0) for model in sorted(models)},
        batch_releases=batch_releases,
        fixed_places=fixed,
    )


def _fixed_places(
    blueprint: Blueprint,
    plan: ServingPlan,
    workers: Sequence[ShiftedWorkers],
    releases: Mapping[str, Sequence[str]],
    places: int,
) -> dict[str, int]:
    """Return the places of batch that belong to fixed workers, of models that lend it others at times.

    Places are divided by what workers carry. Both kinds have at least one.

    releases: Those that serve a queue, by model.
    places: All places of a model.
    """
    found: dict[str, int] = {}
    for model_index, model in enumerate(plan.models):
        lent = sum(
            each.capacity * each.most for each in workers if each.batch_only and each.model == model.name
        )
        fixed = sum(
            worker_load(roles[-1]).requests * roles[-1].workers.maximum
            for index, deployment in enumerate(model.deployments)
            if deployment.release in releases.get(model.name, ())
            for roles in [resolve(blueprint, model_index, index)]
            if roles[-1].workers.scaled_by is None
        )
        if lent and fixed:
            found[model.name] = min(places - 1, max(1, int(places * fixed / (fixed + lent))))
    return found


def _batch_releases(spec: Spec, plan: ServingPlan) -> dict[str, tuple[str, ...]]:
    """Return the releases that serve a queue, by model."""
    names = {
        queue.model: serving_deployments(spec, queue)  # all queues of a model name the same ones
        for queue in (spec.batch.queues if spec.batch else ())
    }
    return {
        model.name: tuple(each.release for each in model.deployments if each.name in names[model.name])
        for model in plan.models
        if model.name in names
    }


def _shifted_workers(
    deployment: DeploymentPlan,
    roles: tuple[ResolvedWorkers, ...],
    managed: frozenset[str],
    handovers: Mapping[Path, Handover],
) -> Iterator[ShiftedWorkers]:
    """Yield the elastic workers of a deployment. Pools in `managed` are those of Managed Instances.

    `handovers` has those of roles on shared pools.

    Demand is counted in requests in flight of the release, which the workers that decode hold. Prefill
    workers share it by their number, so that the floors of both roles keep the ratio of the ranges.
    """
    decoding = roles[-1]
    carried = worker_load(decoding).requests * decoding.workers.maximum
    of_roles = {process.name: role for process, role in zip(deployment.workers, roles, strict=True)}
    for process in deployment.processes:
        if process.scaling is None and process.lent_most is None:
            continue
        resolved = of_roles[process.name]
        handover = handovers.get(resolved.path)
        shared = process.share is not None
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
            least=process.replicas,
            most=process.maximum,
            capacity=carried / process.maximum,
            accelerators=resolved.workers.accelerators,
            priority=(resolved.model.priority or 0) if shared else 0,
            handover_seconds=handover.seconds if handover else None,
            new_node_seconds=handover.on_new_node if handover else None,
            batch_only=process.lent_most is not None,
            tokens_per_accelerator_hour=_batch_tokens(resolved) if process.lent_most is not None else 0.0,
            scale=_scale(deployment, process) if process.lent_most is not None else "",
        )


def _batch_tokens(resolved: ResolvedWorkers) -> float:
    """Return the tokens that an accelerator reads and writes in an hour (simulated); 0 without a profile.

    Where the profile ends before a worker is full, it is what the worker does at that end: the shift compares
    workers by it, and promises nothing.
    """
    capacity, means = role_capacity(resolved), resolved.traffic.means
    if capacity is None:
        return 0.0
    accelerators = resolved.workers.maximum * resolved.workers.accelerators
    tokens = means.input_tokens + means.output_tokens
    return round(capacity.full_requests_per_second * tokens * SECONDS_PER_HOUR / accelerators)


def _scale(deployment: DeploymentPlan, process: Process) -> str:
    """Return group, version and plural of the object whose subresource ``scale`` has a process's number."""
    if deployment.stack == "dynamo":
        return "nvidia.com/v1beta1/dynamographdeploymentscalingadapters"
    return "leaderworkerset.x-k8s.io/v1/leaderworkersets" if process.nodes > 1 else "apps/v1/deployments"


@dataclass(frozen=True, slots=True)
class Handover:
    """How long a role on a shared pool takes to get accelerators."""

    seconds: int
    """Those of another role: until that has drained, and a worker has started on a node that runs."""
    on_new_node: int | None
    """Those of a node that has to start. None if all nodes of the pool always run, or one time is stated."""


def handovers_of(blueprint: Blueprint, plan: ServingPlan) -> Mapping[Path, Handover]:
    """Return how long each role on a shared pool takes to get accelerators.

    First the other role drains: it has the whole time in which its streams may end. Then weights are loaded,
    and the engine starts. If nobody has published or measured its start, it is at least the default of
    `reclaimSeconds`. On a new node nobody has to drain, and node and image come first. A stated
    `reclaimSeconds` holds for all roles.

    blueprint: A valid blueprint.
    Returns: Hand-overs by the place of the role's section.
    """
    shift = blueprint.spec.capacity_shift
    starts: dict[str, dict[Path, tuple[float, float | None]]] = {}
    drains: dict[str, dict[Path, int]] = {}
    for model_index, model in enumerate(plan.models):
        for index, deployment in enumerate(model.deployments):
            for resolved, process in zip(
                resolve(blueprint, model_index, index), deployment.workers, strict=True
            ):
                if process.share is None or resolved.workers.scaled_by is None:
                    continue
                starts.setdefault(resolved.pool.name, {})[resolved.path] = _start(resolved, process.image)
                drains.setdefault(resolved.pool.name, {})[resolved.path] = process.termination_grace_seconds
    stated = shift.reclaim_seconds if shift and "reclaim_seconds" in shift.model_fields_set else None
    # On ECS real time starts only when a run of the shift has seen that accelerators are free.
    seen = _RUN_SECONDS if blueprint.spec.cluster.chosen == "ecs" else 0
    return {
        path: Handover(stated, None)
        if stated
        else Handover(
            math.ceil(
                running
                + seen
                + max((each for other, each in drains[pool].items() if other != path), default=0)
            ),
            None if new is None else math.ceil(new),
        )
        for pool, of_pool in starts.items()
        for path, (running, new) in of_pool.items()
    }


def _start(resolved: ResolvedWorkers, image: str) -> tuple[float, float | None]:
    """Return the time in which a worker starts on a node that runs, and on one that has to start."""
    running = new = 0.0
    for kind in resolved.types:
        start = worker_start(resolved, image, kind, together=1)
        parts = start.on_a_running_node
        unknown = any(each.seconds is None for each in parts.parts)
        seconds = max(parts.seconds, CapacityShift().reclaim_seconds if unknown else 0.0)
        running, new = max(running, seconds), max(new, seconds + start.seconds - parts.seconds)
    nodes = resolved.pool.nodes
    return running, new if nodes.min < nodes.max else None


def _shared_pools(blueprint: Blueprint, workers: tuple[ShiftedWorkers, ...]) -> Iterator[SharedPool]:
    """Yield the pools that models share, with what fixed workers leave of them."""
    moved = {each.pool for each in workers}
    for shared in shared_pools(blueprint.spec):
        fixed = sum(
            each.workers.maximum * each.workers.accelerators
            for each in shared.roles
            if each.workers.scaled_by is None
        )
        if shared.pool.name in moved:
            nodes, size = shared.pool.nodes, shared.pool.types[0].accelerator_count
            yield SharedPool(
                pool=shared.pool.name,
                accelerators=shared.accelerators - fixed,
                accelerators_per_node=size,
                always=None if nodes.min == nodes.max else max(0, nodes.min * size - fixed),
                fixed=fixed,
            )


def _shifted_queues(
    blueprint: Blueprint, plan: ServingPlan, workers: tuple[ShiftedWorkers, ...]
) -> Iterator[ShiftedQueue]:
    """Yield the pools with elastic workers, accelerators and a queue for jobs."""
    if blueprint.spec.queueing is None or blueprint.spec.queueing.kueue is None:
        return
    for pool in blueprint.spec.pools:
        if pool.shared is not None:
            continue  # what real time leaves goes to workers of batch
        quota = pool_quota(pool, plan).accelerators
        elastic = sum(each.most * each.accelerators for each in workers if each.pool == pool.name)
        if quota is not None and quota.resource_name and elastic:
            yield ShiftedQueue(
                pool=pool.name,
                resource=quota.resource_name,
                accelerators=quota.count + elastic,
                quota=quota.count,
            )
