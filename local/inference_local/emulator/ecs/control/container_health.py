"""Health of containers and tasks, from the results of their checks. Source: API HealthCheck."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inference_local.emulator.ecs.control.cluster_state import Health, Shape


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
