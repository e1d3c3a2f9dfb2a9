"""What ``validate`` says about the serving plan of a blueprint for ECS, beside the list of limits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from inference_blueprints.render.ecs.scaling_floors import FloorScheduleError, scheduled_floors
from inference_blueprints.render.ecs.services import RenderedDeployment
from inference_blueprints.render.ecs.task_requests import TaskReferences, to_register
from inference_blueprints.serving.nodes.ecs_capacity import PoolCapacity
from inference_blueprints.serving.types import Process, ServingPlan
from inference_blueprints.spec.wording import Path
from inference_contracts.errors import Finding

#: Size of a task definition (Amazon ECS Developer Guide, "Service quotas"), which counts the whole request.
MOST_TASK_BYTES = 64 * 1024
# ARNs and names of buckets are known only in the account; they are at most as long as these.
_LONGEST = "arn:aws:secretsmanager:us-gov-west-1:111122223333:secret:" + "s" * 128


_REFERENCES = TaskReferences(
    region="us-gov-west-1",
    task_role_arn=_LONGEST,
    execution_role_arn=_LONGEST,
    discovery_secret=lambda key: f"{_LONGEST}:{key}::",
    weights_bucket="b" * 63,
    kv_cache_bucket="b" * 63,
)


def unrenderable_findings(plan: ServingPlan) -> Iterator[Finding]:
    """Yield what cannot be rendered.

    Parameters
    ----------
    plan
        The plan of a blueprint without errors.
    """
    for index, model in enumerate(plan.models):
        for place, deployment in enumerate(model.deployments):
            path = ("spec", "models", index, "deployments", place)
            for process in deployment.workers:
                yield from _floor_findings(process, path)


def size_findings(index: int, rendered: RenderedDeployment) -> Iterator[Finding]:
    """Yield a finding for each task definition that is too large.

    Parameters
    ----------
    index
        Index of the model in the blueprint.
    rendered
        One of its deployments.
    """
    for service in rendered.services:
        size = len(json.dumps(to_register(service.task, _REFERENCES)).encode())
        if size > MOST_TASK_BYTES:
            message = (
                f"the task definition of '{service.name}' has {size:,} bytes, ECS takes {MOST_TASK_BYTES:,}; "
                "shorten 'env' and 'arguments' of the engine"
            )
            yield Finding(("spec", "models", index, "engine"), message)


def capacity_findings(
    capacities: Iterable[PoolCapacity], *, observed: bool, health: bool
) -> Iterator[Finding]:
    """Yield warnings for each pool of Managed Instances.

    Parameters
    ----------
    capacities
        What runs each pool, in the order of the blueprint.
    observed
        Whether the blueprint has `observability`.
    health
        Whether the blueprint has `gpuHealth`.
    """
    for place, capacity in enumerate(capacities):
        if capacity.kind == "managed":
            if observed:
                message = (
                    "ECS Managed Instances run no exporter of GPU metrics, because ECS replaces a host whose "
                    "exporter stops, so panels and alarms about the GPUs of this pool have no data; set "
                    "cluster: {ecs: {managedInstances: never}} for these metrics"
                )
                yield Finding(("spec", "pools", place), message, "warning")
            if health:
                message = (
                    "ECS itself replaces Managed Instances with broken GPUs, so GPU health only records what "
                    "it sees there: ECS' own check of GPUs, and slow workers; set 'repairedBy: gpuHealth' to "
                    "let GPU health replace the hosts of this pool, which an Auto Scaling group then runs"
                )
                yield Finding(("spec", "pools", place), message, "warning")
            message = (
                "ECS Managed Instances have no largest number of hosts: the numbers of workers limit it; set "
                "cluster: {ecs: {managedInstances: never}} for a limit"
            )
            yield Finding(("spec", "pools", place, "nodes", "max"), message, "warning")


def _floor_findings(process: Process, path: Path) -> Iterator[Finding]:
    """Yield what scheduled actions cannot do."""
    if process.scaling is None:
        return
    try:
        scheduled_floors(process.scaling.floors, process.scaling.least)
    except FloorScheduleError as error:
        topology = ("aggregated",) if process.role == "worker" else ("disaggregated", process.role)
        yield Finding((*path, *topology, "scaledBy", "load", "floors"), str(error))
