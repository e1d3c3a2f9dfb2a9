"""Which tasks of a service start and which stop.

Sources: API DeploymentConfiguration (bounds and their rounding; unhealthy tasks), API
UpdateContainerInstancesState (tasks of an instance that drains), API UpdateTaskProtection (protected tasks),
API UpdateService and task-lifecycle-explanation.html.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


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
