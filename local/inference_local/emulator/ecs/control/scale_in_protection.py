"""Protection of tasks from scale-in and deployments.

Sources: API UpdateTaskProtection; task-scale-in-protection-endpoint.html.
"""

from __future__ import annotations

from typing import Final

from inference_local.emulator.ecs.control.cluster_state import EcsTask, TaskStatus

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
