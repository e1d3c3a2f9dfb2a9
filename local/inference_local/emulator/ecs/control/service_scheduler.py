"""The service scheduler: starts and stops the tasks of services, and judges their deployments.

Sources: AWS, "Amazon ECS services" (ecs_services.html), deployment-circuit-breaker.html,
service-throttle-logic.html, service-event-messages-list.html (wording), API Service and Deployment.
"""

from __future__ import annotations

from typing import Final

from inference_local.emulator.ecs.control.cluster_state import (
    STARTING,
    ClusterState,
    EcsDeployment,
    EcsService,
    EcsTask,
    StopCode,
    TaskStatus,
)
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.rolling_update import (
    TaskView,
    count_failure,
    next_step,
    rollback_to,
)
from inference_local.emulator.ecs.control.task_life import TaskLife
from inference_local.emulator.ecs.control.task_placement import choose_provider, needs_of

#: Defaults of API DeploymentConfiguration for the REPLICA scheduler.
_MAXIMUM_PERCENT: Final = 200
_MINIMUM_PERCENT: Final = 100
FARGATE: Final = frozenset({"FARGATE", "FARGATE_SPOT"})
#: Tasks that go "directly from PENDING to STOPPED" are started again after a time that grows "up to a maximum
#: of 27 minutes" (service-throttle-logic.html). The steps are ours: two retries at once, then doubling.
_LONGEST_WAIT_SECONDS: Final = 27 * 60.0
_FIRST_WAIT_SECONDS: Final = 10.0
_RETRIES_AT_ONCE: Final = 2


def wait_seconds(failed_starts: int) -> float:
    """Return the wait in seconds after a number of starts in a row that failed."""
    if failed_starts <= _RETRIES_AT_ONCE:
        return 0.0
    doubled = min(failed_starts - _RETRIES_AT_ONCE - 1, 20)
    return min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**doubled)


class ServiceScheduler:
    """Schedules the services of a cluster.

    around: Agent, target groups, events.
    life: Stops tasks.
    """

    def __init__(self, cluster: ClusterState, around: Dependencies, life: TaskLife) -> None:
        self._cluster = cluster
        self._around = around
        self._life = life

    def new_deployment(self, service: EcsService, task_definition: str, now: float) -> None:
        """Begin a deployment. The former primary one becomes ACTIVE while it has tasks."""
        for each in service.deployments:
            if each.status == "PRIMARY":
                each.status = "ACTIVE"
        identifier = f"ecs-svc/{int(self._around.new_id()[:15], 16):019d}"
        service.deployments.insert(0, EcsDeployment(identifier, task_definition, now))
        service.was_steady = False
        self._tell(service, service.primary, "SERVICE_DEPLOYMENT_IN_PROGRESS", "INFO")

    def step(self, service: EcsService, now: float) -> None:
        """Take the next step of a service."""
        self._judge(service, now)
        primary = service.primary
        tasks = self._cluster.tasks_of(service.name)
        settings = service.request.get("deploymentConfiguration") or {}
        may_start = primary.rollout_state != "FAILED" and now >= primary.retry_at
        step = next_step(
            [self._view(service, task, now) for task in tasks],
            self.desired(service),
            _percent(settings, "minimumHealthyPercent", _MINIMUM_PERCENT),
            _percent(settings, "maximumPercent", _MAXIMUM_PERCENT),
            may_start=may_start,
        )
        for identifier in step.stop:
            task = self._cluster.tasks[identifier]
            self._life.stop(task, now, StopCode.SCHEDULER, self._reason(service, task, now))
        for _ in range(step.start):
            self.start_task(service, now)
        if step.blocked:
            self._around.service_event(
                service,
                now,
                "was unable to stop or start tasks during a deployment because of the service deployment "
                "configuration. Update the minimumHealthyPercent or maximumPercent value and try again.",
            )
        self._settle(service, now, is_steady=step.is_steady)

    def desired(self, service: EcsService) -> int:
        """Return the number of tasks that a service wants; of DAEMON one per instance (API CreateService)."""
        if service.request.get("schedulingStrategy") != "DAEMON":
            return service.desired
        return sum(each.takes_tasks for each in self._cluster.instances.values()) if service.desired else 0

    def start_task(self, service: EcsService, now: float) -> EcsTask:
        """Create a task of the primary deployment. Placement happens next."""
        primary = service.primary
        definition = self._around.definitions[primary.task_definition]
        present = [task.provider for task in self._cluster.tasks_of(service.name) if task.is_live]
        strategy = service.request.get("capacityProviderStrategy") or ()
        launch_type = service.request.get("launchType")
        provider = (
            choose_provider(strategy, present)
            if strategy
            else ("FARGATE" if launch_type == "FARGATE" else "")
        )
        task = EcsTask(
            identifier=self._around.new_id(),
            definition=definition,
            needs=needs_of(definition),
            service=service.name,
            deployment=primary.identifier,
            provider=provider,
            created_at=now,
            group=f"service:{service.name}",
            started_by=primary.identifier,
            tags=dict(service.tags) if service.request.get("propagateTags") == "SERVICE" else {},
            runs_commands=bool(service.request.get("enableExecuteCommand")),
        )
        self._cluster.tasks[task.identifier] = task
        return task

    def _judge(self, service: EcsService, now: float) -> None:
        """Count tasks that failed to start or to become healthy."""
        for task in self._cluster.tasks.values():
            if task.service != service.name or task.failure_counted:
                continue
            if task.status is not TaskStatus.STOPPED:
                self._life.note_health(task, service)
                continue
            task.failure_counted = True
            for deployment in service.deployments:
                if deployment.identifier == task.deployment and _is_failure(task):
                    self._count(service, deployment, task, now)

    def _count(self, service: EcsService, deployment: EcsDeployment, task: EcsTask, now: float) -> None:
        if task.running_at is None:
            deployment.failed_starts += 1
            if wait := wait_seconds(deployment.failed_starts):
                deployment.retry_at = now + wait
                self._around.service_event(
                    service, now, "is unable to consistently start tasks successfully."
                )
        if not count_failure(service, deployment):
            return
        deployment.rollout_state = "FAILED"
        deployment.rollout_reason = "ECS deployment circuit breaker: tasks failed to start."
        self._around.service_event(
            service, now, f"(deployment {deployment.identifier}) deployment failed: tasks failed to start."
        )
        self._tell(service, deployment, "SERVICE_DEPLOYMENT_FAILED", "ERROR")
        former = rollback_to(service)
        if former is None:
            return
        deployment.status = "ACTIVE"
        former.status = "PRIMARY"
        former.rollout_state = "IN_PROGRESS"
        former.rollout_reason = (
            f"ECS deployment circuit breaker: rolling back to deploymentId {former.identifier}."
        )
        former.breaker_count = former.failed_starts = 0
        former.retry_at = 0.0
        service.request["taskDefinition"] = former.task_definition
        self._around.service_event(service, now, f"rolling back to deployment {former.identifier}.")

    def _settle(self, service: EcsService, now: float, *, is_steady: bool) -> None:
        primary = service.primary
        if is_steady and primary.rollout_state == "IN_PROGRESS":
            primary.rollout_state = "COMPLETED"
            primary.rollout_reason = f"ECS deployment {primary.identifier} completed."
            service.deployments = [primary]
            self._tell(service, primary, "SERVICE_DEPLOYMENT_COMPLETED", "INFO")
        if is_steady and not service.was_steady:
            self._around.service_event(service, now, "has reached a steady state.")
        service.was_steady = is_steady

    def _view(self, service: EcsService, task: EcsTask, now: float) -> TaskView:
        instance = self._cluster.instances.get(task.instance or "")
        return TaskView(
            identifier=task.identifier,
            is_current=task.deployment == service.primary.identifier,
            is_live=task.is_live,
            is_healthy=task.is_live and self._life.is_healthy(task),
            is_failing=self._life.is_failing(task, service, now),
            drains=instance is not None and instance.status == "DRAINING",
            is_protected=task.is_protected(now),
            is_pending=task.status in STARTING,
            zone=instance.zone if instance else "",
            age=now - task.created_at,
        )

    def _reason(self, service: EcsService, task: EcsTask, now: float) -> str:
        if self._life.is_failing(task, service, now):
            return f"Task failed container health checks (service {service.name})"
        if task.deployment != service.primary.identifier:
            return f"Scaling activity initiated by (deployment {service.primary.identifier})"
        return f"Scaling activity initiated by (deployment {task.deployment})"

    def _tell(self, service: EcsService, deployment: EcsDeployment, name: str, kind: str) -> None:
        self._around.tell(
            "ECS Deployment State Change",
            {
                "cluster": self._cluster.name,
                "service": service.name,
                "eventType": kind,
                "eventName": name,
                "deploymentId": deployment.identifier,
                "reason": deployment.rollout_reason,
            },
        )


def _percent(settings: object, name: str, default: int) -> int:
    value = settings.get(name) if isinstance(settings, dict) else None
    return default if value is None else int(value)


def _is_failure(task: EcsTask) -> bool:
    """Whether a task that never was healthy ended by itself, or because its health checks failed."""
    if task.stop_code is StopCode.SCHEDULER:
        return "health checks" in (task.stopped_reason or "")
    return task.stop_code in (StopCode.FAILED_TO_START, StopCode.ESSENTIAL_EXITED)
