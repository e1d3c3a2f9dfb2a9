"""A deployment of a service: which tasks start and which stop, and when it has failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inference_local.emulator.ecs.control.cluster_state import EcsDeployment, EcsService, Shape

# When a deployment has failed.
#
# Sources: AWS, "How the Amazon ECS deployment circuit breaker detects failures"
# (deployment-circuit-breaker.html); API DeploymentCircuitBreaker and ThresholdConfiguration.

#: BOUNDED_PERCENT: "a minimum threshold of 3 and a maximum threshold of 200".
_MINIMUM: Final = 3
_MAXIMUM: Final = 200
_DEFAULT_PERCENT: Final = 50


def threshold(desired: int, breaker: Shape) -> int:
    """Return the number of failed tasks that fails a deployment.

    desired: The service's desired number of tasks.
    breaker: ``deploymentCircuitBreaker`` of the service.
    """
    settings = breaker.get("thresholdConfiguration") or {}
    kind = settings.get("type", "BOUNDED_PERCENT")
    value = int(settings.get("value", _DEFAULT_PERCENT))
    if kind == "COUNT":
        return value
    share = -(-desired * value // 100)
    return share if kind == "UNBOUNDED_PERCENT" else max(_MINIMUM, min(_MAXIMUM, share))


def count_failure(service: EcsService, deployment: EcsDeployment) -> bool:
    """Count a task that failed to start or to be healthy; return whether the deployment has failed now.

    Counted are the tasks of deployments that are in progress: afterwards, the scheduler replaces tasks for
    ever.
    """
    deployment.failed_tasks += 1
    if deployment.rollout_state != "IN_PROGRESS":
        return False
    deployment.breaker_count += 1
    breaker = service.request.get("deploymentConfiguration", {}).get("deploymentCircuitBreaker") or {}
    if not breaker.get("enable"):
        return False
    return deployment.breaker_count >= threshold(service.desired, breaker)


def count_healthy(service: EcsService, deployment: EcsDeployment) -> None:
    """Note that a task became healthy, which resets the count by default (resetOnHealthyTask)."""
    breaker = service.request.get("deploymentConfiguration", {}).get("deploymentCircuitBreaker") or {}
    if breaker.get("resetOnHealthyTask", True):
        deployment.breaker_count = 0


def rollback_to(service: EcsService) -> EcsDeployment | None:
    """Return the deployment to go back to, if the service wants that and has one.

    It is "the most recent deployment that is in a COMPLETED state".
    """
    breaker = service.request.get("deploymentConfiguration", {}).get("deploymentCircuitBreaker") or {}
    if not breaker.get("rollback"):
        return None
    completed = [each for each in service.deployments if each.rollout_state == "COMPLETED"]
    return max(completed, key=lambda each: each.created_at, default=None)


@dataclass(frozen=True)
class TaskView:
    """What the scheduler looks at."""

    identifier: str
    is_current: bool
    """Whether it belongs to the primary deployment."""
    is_live: bool
    """False once it has been told to stop."""
    is_healthy: bool
    """Runs, and its health checks pass, both of containers and of targets."""
    is_failing: bool
    """Its health checks fail and its grace period is over."""
    drains: bool
    """Whether its instance drains."""
    is_protected: bool
    """From scale-in and deployments."""
    is_pending: bool
    zone: str
    """Its availability zone."""
    age: float
    """Larger for older tasks."""


@dataclass(frozen=True)
class RollingStep:
    """What happens now."""

    start: int
    """Number of tasks of the primary deployment to start."""
    stop: tuple[str, ...]
    """Ids of tasks to stop."""
    is_steady: bool
    """Whether nothing is left to do."""
    blocked: bool = False
    """Whether the percents allow neither a start nor a stop that is needed."""


def bounds(desired: int, minimum_percent: int, maximum_percent: int) -> tuple[int, int]:
    """Return the least healthy and the most tasks: rounded up, and down (API DeploymentConfiguration)."""
    return -(-desired * minimum_percent // 100), math.floor(desired * maximum_percent / 100)


def next_step(
    tasks: Sequence[TaskView], desired: int, minimum_percent: int, maximum_percent: int, *, may_start: bool
) -> RollingStep:
    """Decide the next step of a service.

    tasks: All that have not stopped, also those that were told to.
    may_start: False if the primary deployment has failed or its starts are throttled.
    """
    minimum, maximum = bounds(desired, minimum_percent, maximum_percent)
    live = [each for each in tasks if each.is_live]
    staying = [each for each in live if each.is_current and not each.drains and not each.is_failing]
    leaving = [each for each in live if each not in staying]
    missing = max(0, desired - len(staying))
    # "an upper limit on the number of running tasks during task replacement … replacement tasks can't start
    # until the draining tasks have stopped": tasks that stop still count.
    start = min(missing, max(0, maximum - len(tasks))) if may_start else 0
    stop = _of_scale_in(staying, desired)
    healthy_left = sum(each.is_healthy for each in live if each.identifier not in stop)
    for each in sorted(leaving, key=lambda task: (task.is_healthy, not task.is_failing, -task.age)):
        if each.is_protected and not (each.drains or each.is_failing):
            continue
        if each.is_pending and (each.drains or not each.is_current):
            stop.append(each.identifier)  # "in the PENDING state are stopped immediately"
        elif each.is_healthy:
            if healthy_left > minimum:
                stop.append(each.identifier)
                healthy_left -= 1
        elif not start:
            # An unhealthy task waits for its replacement, unless the upper bound prevents that one's start:
            # then "the scheduler stops the unhealthy tasks one-by-one" (minimumHealthyPercent).
            stop.append(each.identifier)
            if missing:
                break
    is_steady = len(tasks) == len(staying) == desired and all(each.is_healthy for each in staying)
    blocked = bool(missing and may_start and not start and not stop and len(tasks) == len(live))
    return RollingStep(start, tuple(stop), is_steady, blocked)


def _of_scale_in(staying: Sequence[TaskView], desired: int) -> list[str]:
    """Return the tasks above the desired number: not healthy first, then from the zone with most tasks.

    Protected tasks stay. Source: task-placement.html, "Task termination"; the order inside a zone is ours.
    """
    left = list(staying)
    stop: list[str] = []
    while len(left) > desired:
        zones = Counter(each.zone for each in left)
        free = [each for each in left if not each.is_protected]
        if not free:
            break
        victim = min(free, key=lambda task: (task.is_healthy, -zones[task.zone], task.age))
        left.remove(victim)
        stop.append(victim.identifier)
    return stop
