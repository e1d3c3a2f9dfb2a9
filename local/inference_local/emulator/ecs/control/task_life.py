"""The life of a task between the control plane and the agent.

Sources: AWS, "Amazon ECS task lifecycle" (task-lifecycle-explanation.html); stopped-task-error-codes.html for
reasons and stop codes; load-balancer-connection-draining.html: a target is deregistered before SIGTERM. A
task in ACTIVATING is entered in service discovery ("configures service discovery"): before it is healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from inference_local.emulator.ecs.control.cluster_state import (
    STARTING,
    ClusterState,
    ContainerState,
    EcsService,
    EcsTask,
    Health,
    Shape,
    StopCode,
    TaskEnd,
    TaskStatus,
)
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.rolling_update import count_healthy


@dataclass(frozen=True)
class CheckSettings:
    """The numbers of a health check, in seconds, with the defaults of the API."""

    interval: float = 30.0
    timeout: float = 5.0
    retries: int = 3
    start_period: float = 0.0

    @classmethod
    def of(cls, check: Shape) -> CheckSettings:
        """Read ``healthCheck`` of a container definition."""
        return cls(
            float(check.get("interval") or 30),
            float(check.get("timeout") or 5),
            int(check.get("retries") or 3),
            float(check.get("startPeriod") or 0),
        )


class HealthRecord:
    """Follows the results of one container's check.

    Failures in the start period do not count, until a first success.
    """

    def __init__(self, settings: CheckSettings) -> None:
        self._settings = settings
        self._failures = 0
        self._has_passed = False
        self.health = Health.UNKNOWN

    def add(self, *, passed: bool, running_seconds: float) -> Health:
        """Add a result.

        running_seconds: Time from the container's start to the start of this check.
        """
        if passed:
            self._failures, self._has_passed, self.health = 0, True, Health.HEALTHY
        elif self._has_passed or running_seconds >= self._settings.start_period:
            self._failures += 1
            if self._failures >= self._settings.retries:
                self.health = Health.UNHEALTHY
        return self.health


def task_health(essential: Iterable[Health]) -> Health:
    """Return a task's health from those of its essential containers with a health check.

    UNHEALTHY before UNKNOWN before HEALTHY. A task without checks is UNKNOWN.
    """
    every = set(essential)
    for health in (Health.UNHEALTHY, Health.UNKNOWN):
        if health in every:
            return health
    return Health.HEALTHY if every else Health.UNKNOWN


# Protection of tasks from scale-in and deployments.
#
# Sources: API UpdateTaskProtection; task-scale-in-protection-endpoint.html.

DEFAULT_MINUTES: Final = 120
_MAX_MINUTES: Final = 2880


class ProtectionError(ValueError):
    """A request that ECS refuses. The first argument is ECS' code."""


def protect(task: EcsTask, minutes: int | None, now: float) -> None:
    """Protect a task from now on.

    minutes: 1 to 2,880 minutes; None for two hours.
    Raises ProtectionError: ``TASK_NOT_VALID`` for a task without a service or one that stops (API failure
        reasons); ``InvalidParameterException`` for other numbers of minutes.
    """
    if not task.service or task.status is not TaskStatus.RUNNING or task.wanted is TaskStatus.STOPPED:
        raise ProtectionError("TASK_NOT_VALID")
    chosen = DEFAULT_MINUTES if minutes is None else minutes
    if not 1 <= chosen <= _MAX_MINUTES:
        raise ProtectionError("InvalidParameterException")
    task.protected_until = now + 60.0 * chosen


def unprotect(task: EcsTask) -> None:
    """End the protection of a task."""
    task.protected_until = None


class TaskLife:
    """Moves the tasks of a cluster from state to state.

    around: Agent, target groups, events.
    """

    def __init__(self, cluster: ClusterState, around: Dependencies) -> None:
        self._cluster = cluster
        self._around = around

    def stop(self, task: EcsTask, now: float, code: StopCode, reason: str) -> None:
        """Want a task to stop. `advance` does it."""
        if task.wanted is TaskStatus.STOPPED:
            return
        task.wanted = TaskStatus.STOPPED
        task.stop_code, task.stopped_reason = code, reason
        task.stopping_at = now
        self._changed(task)

    def advance(self, now: float) -> None:
        """Take the next step of every task that stops."""
        for task in list(self._cluster.tasks.values()):
            if task.wanted is not TaskStatus.STOPPED or task.status is TaskStatus.STOPPED:
                continue
            if task.status in STARTING and task.address == "":
                self._end(task, now)  # it was never given to an agent
                continue
            if task.status is TaskStatus.RUNNING:
                self._move(task, TaskStatus.DEACTIVATING)
                self._forget_names(task)
                for group, port in self._targets(task):
                    self._around.targets.deregister(group, task.address, port)
            left = task.status is TaskStatus.DEACTIVATING and all(
                self._around.targets.is_unused(group, task.address, port)
                for group, port in self._targets(task)
            )
            if left or task.status in STARTING:
                self._to_agent(task)

    def observe_start(self, identifier: str) -> None:
        """Take note that the agent prepares a task."""
        if (task := self._known(identifier)) and task.status is TaskStatus.PENDING:
            self._move(task, TaskStatus.ACTIVATING)
            for registry in self._registries(task):
                self._around.names.register(registry, task.identifier, task.address)

    def observe_containers(
        self, identifier: str, containers: Mapping[str, ContainerState], now: float
    ) -> None:
        """Take the states of containers. A task runs once all its essential containers do."""
        task = self._known(identifier)
        if task is None:
            return
        task.containers = dict(containers)
        task.health = task_health(
            task.containers[each["name"]].health
            for each in task.definition["containerDefinitions"]
            if each.get("essential", True) and each.get("healthCheck") and each["name"] in task.containers
        )
        essential = [
            each["name"] for each in task.definition["containerDefinitions"] if each.get("essential", True)
        ]
        runs = all(task.containers[name].status == "RUNNING" for name in essential if name in task.containers)
        if runs and task.status in STARTING and set(essential) <= set(task.containers):
            task.running_at = now
            self._move(task, TaskStatus.RUNNING)
            if task.wanted is TaskStatus.RUNNING:
                for group, port in self._targets(task):
                    self._around.targets.register(group, task.address, port)

    def observe_end(
        self, identifier: str, containers: Mapping[str, ContainerState], now: float, end: TaskEnd
    ) -> None:
        """Take note that a task has ended, and why, unless the control plane stopped it."""
        task = self._known(identifier)
        if task is None:
            return
        task.containers = dict(containers)
        if task.wanted is TaskStatus.RUNNING:
            self.stop(task, now, end.code, end.reason)
            for group, port in self._targets(task):
                self._around.targets.deregister(group, task.address, port)
        self._end(task, now)

    def is_healthy(self, task: EcsTask) -> bool:
        """Whether a task counts as healthy.

        "RUNNING", its container health checks pass, and the load balancer says so (API UpdateService).
        """
        if task.status is not TaskStatus.RUNNING:
            return False
        if self._has_check(task) and task.health is not Health.HEALTHY:
            return False
        return all(
            self._around.targets.is_healthy(group, task.address, port) for group, port in self._targets(task)
        )

    def is_failing(self, task: EcsTask, service: EcsService, now: float) -> bool:
        """Whether its health checks fail, and the grace period is over (API CreateService)."""
        if task.status is not TaskStatus.RUNNING or task.health is not Health.UNHEALTHY:
            return False
        grace = float(service.request.get("healthCheckGracePeriodSeconds") or 0)
        return task.running_at is not None and now - task.running_at >= grace

    def note_health(self, task: EcsTask, service: EcsService) -> None:
        """Tell the circuit breaker of a task's first health."""
        if task.failure_counted or not self.is_healthy(task):
            return
        task.failure_counted = True
        for deployment in service.deployments:
            if deployment.identifier == task.deployment:
                deployment.failed_starts = 0
                count_healthy(service, deployment)

    def _has_check(self, task: EcsTask) -> bool:
        return any(
            each.get("essential", True) and each.get("healthCheck")
            for each in task.definition["containerDefinitions"]
        )

    def _targets(self, task: EcsTask) -> list[tuple[str, int]]:
        service = self._cluster.services.get(task.service)
        if service is None:
            return []
        return [
            (each["targetGroupArn"], int(each["containerPort"]))
            for each in service.request.get("loadBalancers", ())
            if each.get("targetGroupArn")
        ]

    def _registries(self, task: EcsTask) -> list[str]:
        service = self._cluster.services.get(task.service)
        registries = service.request.get("serviceRegistries", ()) if service else ()
        return [each["registryArn"] for each in registries if each.get("registryArn")]

    def _to_agent(self, task: EcsTask) -> None:
        self._move(task, TaskStatus.STOPPING)
        self._around.runner.stop(task)

    def _end(self, task: EcsTask, now: float) -> None:
        task.stopped_at = now
        task.gpu_ids = ()
        task.protected_until = None
        self._forget_names(task)
        self._move(task, TaskStatus.STOPPED)

    def _forget_names(self, task: EcsTask) -> None:
        for registry in self._registries(task):
            self._around.names.deregister(registry, task.identifier)

    def _known(self, identifier: str) -> EcsTask | None:
        task = self._cluster.tasks.get(identifier)
        return None if task is None or task.status is TaskStatus.STOPPED else task

    def _move(self, task: EcsTask, status: TaskStatus) -> None:
        task.status = status
        self._changed(task)

    def _changed(self, task: EcsTask) -> None:
        task.version += 1
        self._around.tell("ECS Task State Change", {"cluster": self._cluster.name, "task": task.identifier})
