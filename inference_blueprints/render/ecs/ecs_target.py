"""Amazon ECS as a target: each process of a deployment is a service."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from inference_blueprints.render.callers.keeper import KEEPER
from inference_blueprints.render.ecs.ecs_limits import limits_of, runs_commands
from inference_blueprints.render.ecs.rendered_tasks import TaskPlace, deployment_tasks
from inference_blueprints.render.ecs.scaling_policies import (
    FloorScheduleError,
    scheduled_floors,
    service_scaling,
)
from inference_blueprints.render.ecs.services import (
    MAX_WAIT_SECONDS,
    ProviderShare,
    RenderedDeployment,
    RenderedService,
    rollout_percents,
)
from inference_blueprints.render.ecs.task_devices import neuron_hosts
from inference_blueprints.render.ecs.tasks import Compute, RenderedTask, TaskReferences, to_register
from inference_blueprints.render.target import Target
from inference_blueprints.serving.nodes.ecs_capacity import PoolCapacity, managed_pools, pool_capacities
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.known_callers import CALLERS_SIDECAR
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, Process, ServingPlan
from inference_blueprints.spec.types import Blueprint, Purchase
from inference_blueprints.spec.wording import Path
from inference_contracts.ecs_names import MAIN_CONTAINER, capacity_provider, service_name
from inference_contracts.errors import Finding
from inference_contracts.metric_labels import SYSTEM_POOL
from inference_contracts.task_tags import LABEL_TAGS, METRICS_PORT_TAG

#: Size of a task definition (Amazon ECS Developer Guide, "Service quotas"), which counts the whole request.
MAX_TASK_BYTES = 64 * 1024
# ARNs and names of buckets are known only in the account; they are at most as long as these.
_LONGEST = "arn:aws:secretsmanager:us-gov-west-1:111122223333:secret:" + "s" * 128
_REFERENCES = TaskReferences(
    region="us-gov-west-1",
    task_role_arn=_LONGEST,
    execution_role_arn=_LONGEST,
    discovery_secret=lambda key: f"{_LONGEST}:{key}::",
    weights_bucket="b" * 63,
    kv_cache_bucket="b" * 63,
    certificate_arns=defaultdict(lambda: _LONGEST),
)
# With Spot and on demand, one task in four beside the first is on demand.
_ON_DEMAND_BASE, _ON_DEMAND_WEIGHT, _SPOT_WEIGHT = 1, 1, 3
_ALL = 100
# The load balancer counts a task as healthy after some checks.
_FRONTEND_PATH = "/live"


_COPY = ": a copy of the weights, then the start of the engine"


def copies_weights(task: RenderedTask) -> bool:
    """Return whether another container prepares the weights before the engine starts."""
    return any(each.name not in (MAIN_CONTAINER, KEEPER, CALLERS_SIDECAR) for each in task.containers)


def unrenderable_findings(plan: ServingPlan) -> Iterator[Finding]:
    """Yield what cannot be rendered.

    plan: The plan of a blueprint without errors.
    """
    for index, model in enumerate(plan.models):
        for place, deployment in enumerate(model.deployments):
            path = ("spec", "models", index, "deployments", place)
            for process in deployment.workers:
                yield from _floor_findings(process, path)


def size_findings(index: int, rendered: RenderedDeployment) -> Iterator[Finding]:
    """Yield a finding for each task definition that is too large.

    index: Index of the model in the blueprint.
    rendered: One of its deployments.
    """
    for service in rendered.services:
        size = len(json.dumps(to_register(service.task, _REFERENCES)).encode())
        if size > MAX_TASK_BYTES:
            message = (
                f"the task definition of '{service.name}' has {size:,} bytes, ECS takes {MAX_TASK_BYTES:,}; "
                "shorten 'env' and 'arguments' of the engine"
            )
            yield Finding(("spec", "models", index, "engine"), message)


def start_findings(path: Path, rendered: RenderedDeployment) -> Iterator[Finding]:
    """Yield a warning for each service whose tasks may start for longer than CloudFormation waits.

    path: Of the deployment in the blueprint.
    """
    for service in rendered.services:
        if service.start_seconds > MAX_WAIT_SECONDS:
            message = (
                f"a task of '{service.name}' may need {service.start_seconds:,} s until it answers"
                f"{_COPY if copies_weights(service.task) else ''}; "
                f"CloudFormation waits for {MAX_WAIT_SECONDS:,} s and then takes the stack back. If that "
                "happens, deploy again: "
                "what was copied and compiled stays. Quantised weights start sooner"
            )
            yield Finding(path, message, "warning")


def spare_findings(
    path: Path, rendered: RenderedDeployment, shared: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield a warning for each service that stops tasks before it starts others.

    Managed Instances drain from day 14 and end by day 21 (Amazon ECS Developer Guide, "Instance patching in
    Amazon ECS Managed Instances"), and draining follows the percents of the deployment.

    path: Of the deployment in the blueprint.
    shared: Pools that models share by the hour. What is free there goes to batch.
    """
    for service in rendered.services:
        tasks = service.scaling.minimum if service.scaling else service.tasks
        if service.pool is None or service.percents.maximum > _ALL or not tasks:
            continue
        gone = tasks - -(-tasks * service.percents.minimum_healthy // _ALL)
        when = "in each deployment"
        if service.compute == "managed":
            when += ", and every two weeks when ECS replaces the hosts,"
        remedy = (
            "deploy when load is low, or raise 'replicas.min' so that fewer percent stop"
            if service.pool in shared
            else "raise 'nodes.max' of the pool by the nodes of one worker, which run only meanwhile"
        )
        message = (
            f"{when} {gone} of {tasks} workers of '{service.name}' stop before others start, because "
            f"pool '{service.pool}' has no room for one more: {100 * gone / tasks:.0f} % of the capacity "
            f"is missing for up to {service.start_seconds:,} s; {remedy}"
        )
        yield Finding(path, message, "warning")


def capacity_findings(
    capacities: Iterable[PoolCapacity], *, observed: bool, health: bool
) -> Iterator[Finding]:
    """Yield warnings for each pool of Managed Instances.

    capacities: What runs each pool, in the order of the blueprint.
    observed: Whether the blueprint has `observability`.
    health: Whether the blueprint has `gpuHealth`.
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
                "ECS Managed Instances have no maximum number of hosts: the numbers of workers limit it; set "
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


class EcsTarget(Target[RenderedDeployment]):
    """Renders deployments as services.

    blueprint: A blueprint for ECS.
    """

    def __init__(self, blueprint: Blueprint, plan: ServingPlan) -> None:
        managed = managed_pools(blueprint, plan)
        pools = blueprint.spec.pools
        self._runs_commands = runs_commands(blueprint)
        computes: Mapping[str, Compute] = {
            pool.name: "managed" if pool.name in managed else "group" for pool in pools
        }
        self._purchases = {pool.name: pool.purchase for pool in pools}
        self._place = TaskPlace(
            blueprint.metadata.name,
            computes,
            {pool.name: pool.types[0].efa_interfaces if pool.efa else 0 for pool in pools},
            {pool.name: hosts for pool in pools if (hosts := neuron_hosts(pool))},
        )

    @classmethod
    def findings(cls, blueprint: Blueprint) -> Iterator[Finding]:
        """Yield a finding for each part of a blueprint that cannot run on ECS, or has no effect there.

        blueprint: A blueprint that may have invalid values.
        """
        yield from limits_of(blueprint)

    @classmethod
    def planned_findings(cls, blueprint: Blueprint) -> Iterator[Finding]:
        """Yield a finding for each part of the plan that cannot run on ECS, or differs there.

        blueprint: A blueprint without errors and invalid values.
        """
        plan = build_plan(blueprint)
        found = list(unrenderable_findings(plan))
        yield from found
        if found:
            return
        target = cls(blueprint, plan)
        shared = {pool.name for pool in blueprint.spec.pools if pool.shared is not None}
        for index, model in enumerate(plan.models):
            for place, rendered in enumerate(target.render(model)):
                path = ("spec", "models", index, "deployments", place)
                yield from size_findings(index, rendered)
                yield from start_findings(path, rendered)
                yield from spare_findings(path, rendered, shared)
        observed = blueprint.spec.observability is not None
        health = blueprint.spec.gpu_health is not None
        yield from capacity_findings(pool_capacities(blueprint, plan), observed=observed, health=health)

    def render(self, model: ModelPlan) -> tuple[RenderedDeployment, ...]:
        """Return the services of each deployment, in the order of the plan.

        Raises ValueError if a process cannot run on ECS: `validate` reports it before.
        """
        return tuple(self._deployment(each) for each in model.deployments)

    def _deployment(self, deployment: DeploymentPlan) -> RenderedDeployment:
        tasks = deployment_tasks(deployment, self._place)
        return RenderedDeployment(
            deployment.release,
            tuple(
                self._service(deployment, process, replace(task, runs_commands=self._runs_commands))
                for process, task in zip(deployment.processes, tasks, strict=True)
            ),
        )

    def _service(self, deployment: DeploymentPlan, process: Process, task: RenderedTask) -> RenderedService:
        entry = process is deployment.entry_point
        scaling = service_scaling(self._place.platform, deployment.release, process)
        startup = process.probes.startup
        # The time counts from the start of the task: another container may copy the weights first. A worker
        # that starts even later has 300 s more, and its successor finds the copy.
        steps = 2 if copies_weights(task) else 1
        start_seconds = steps * startup.period_seconds * startup.failure_threshold
        labels = {
            "platform": self._place.platform,
            "model": deployment.model,
            "release": deployment.release,
            "role": process.role,
            "pool": process.pool or SYSTEM_POOL,
        }
        return RenderedService(
            name=service_name(deployment.release, process.name, managed=task.compute == "managed"),
            process=process.name,
            role=process.role,
            compute=task.compute,
            pool=process.pool,
            strategy=self._strategy(process),
            tasks=None if scaling else process.replicas,
            scaling=scaling,
            percents=rollout_percents(process.rollout, process.replicas),
            grace_seconds=min(start_seconds, MAX_WAIT_SECONDS),
            start_seconds=start_seconds,
            drain_seconds=_drain_seconds(process) if entry else None,
            entry_port=deployment.target_port if entry else None,
            health_path=_health_path(process) if entry else None,
            packed=task.compute == "group",
            awaits_weights=process.awaits_weights,
            tags={
                **{LABEL_TAGS[name]: value for name, value in labels.items()},
                # A task without our program cannot tag itself with its address.
                **({} if process.has_python else {METRICS_PORT_TAG: str(process.called_port)}),
            },
            task=task,
        )

    def _strategy(self, process: Process) -> tuple[ProviderShare, ...]:
        """Return the capacity providers. A task stays with its own even if that has no capacity."""
        if process.pool is None:
            return (ProviderShare("FARGATE", 0, 1),)
        spot = _buys_spot(self._purchases[process.pool])
        managed = self._place.computes[process.pool] == "managed"
        names = {
            each: capacity_provider(self._place.platform, process.pool, managed=managed, spot=each)
            for each in (False, True)
        }
        if spot == "with on demand":
            return (
                ProviderShare(names[False], _ON_DEMAND_BASE, _ON_DEMAND_WEIGHT),
                ProviderShare(names[True], 0, _SPOT_WEIGHT),
            )
        return (ProviderShare(names[spot == "only"], 0, 1),)


def _drain_seconds(entry: Process) -> int:
    """Return the time in which the load balancer ends the requests of a task, before it gets SIGTERM.

    A server that drops its answers at SIGTERM pauses for the longest of them before it; others need that time
    after it.
    """
    return max(entry.pre_stop_seconds, entry.termination_grace_seconds - entry.pre_stop_seconds)


def _health_path(entry: Process) -> str:
    """Return the path that the load balancer checks."""
    return entry.probes.readiness.path if entry.is_worker else _FRONTEND_PATH


def _buys_spot(purchase: Purchase) -> str:
    if purchase.spot is None:
        return "never"
    return "with on demand" if purchase.spot.on_demand_fallback else "only"
