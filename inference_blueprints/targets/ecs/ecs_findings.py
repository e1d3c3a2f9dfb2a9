"""What ``validate`` says about the serving plan of a blueprint for ECS, beside the list of limits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.serving.types import DeploymentPlan, Process, ServingPlan
from inference_blueprints.spec.wording import Path
from inference_blueprints.targets.ecs.fargate_sizes import fargate_size
from inference_blueprints.targets.ecs.pool_capacity import PoolCapacity
from inference_blueprints.targets.ecs.scaling_floors import FloorScheduleError, scheduled_floors
from inference_blueprints.targets.ecs.services import RenderedDeployment
from inference_blueprints.targets.ecs.task_requests import TaskReferences, to_register

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
            yield from _deployment_findings(deployment, index, place)


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


def capacity_findings(capacities: Iterable[PoolCapacity]) -> Iterator[Finding]:
    """Yield a warning for each pool whose largest number of hosts has no effect."""
    for place, capacity in enumerate(capacities):
        if capacity.kind == "managed":
            message = (
                "ECS Managed Instances have no largest number of hosts: the numbers of workers limit it; set "
                "cluster: {ecs: {managedInstances: never}} for a limit"
            )
            yield Finding(("spec", "pools", place, "nodes", "max"), message, "warning")


def _deployment_findings(deployment: DeploymentPlan, model: int, place: int) -> Iterator[Finding]:
    """Yield what cannot be rendered."""
    path: Path = ("spec", "models", model)
    for process in deployment.processes:
        size = process.resources
        if not process.is_worker and fargate_size(size.cpu, size.memory_mib) is None:
            message = (
                f"got {size.cpu} vCPUs and {size.memory_mib // 1024} GiB, a task on Fargate has at most 16 "
                "vCPUs and 120 GiB; use more and smaller 'replicas'"
            )
            yield Finding((*path, "frontend"), message)
        if process.is_worker:
            yield from _floor_findings(process, (*path, "deployments", place))


def _floor_findings(process: Process, path: Path) -> Iterator[Finding]:
    """Yield what scheduled actions cannot do."""
    if process.scaling is None:
        return
    try:
        scheduled_floors(process.scaling.floors, process.scaling.least)
    except FloorScheduleError as error:
        topology = ("aggregated",) if process.role == "worker" else ("disaggregated", process.role)
        yield Finding((*path, *topology, "scaledBy", "load", "floors"), str(error))
