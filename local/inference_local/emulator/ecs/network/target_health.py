"""Targets of a load balancer and their health.

Sources (Elastic Load Balancing, "Target groups for your Application Load Balancers"):
target-group-health-checks.html (states; thresholds; "If a target group contains only unhealthy registered
targets, the load balancer routes requests to all those targets"; "After your target is registered, it must
pass one health check to be considered healthy"), edit-target-group-attributes.html
(deregistration delay: "If a deregistering target has no in-flight requests and no active connections, Elastic
Load Balancing immediately completes the deregistration process"; least outstanding requests). Here an idle
target is unused at once, where AWS shows it as draining until the end of the delay: tasks get SIGTERM earlier
than there, never later.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class TargetState(StrEnum):
    """States of API TargetHealth. A target that is ``unused`` is not kept."""

    INITIAL = "initial"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    DRAINING = "draining"


@dataclass(frozen=True)
class GroupSettings:
    """Settings of a target group (API TargetGroup and TargetGroupAttribute), in seconds."""

    path: str
    interval: float
    timeout: float
    healthy_threshold: int
    unhealthy_threshold: int
    codes: frozenset[int]
    delay: float
    least_outstanding: bool

    @classmethod
    def of(cls, group: Mapping[str, Any], attributes: Mapping[str, str]) -> GroupSettings:
        """Read what the API describes.

        group: The target group.
        """
        return cls(
            group["HealthCheckPath"],
            float(group["HealthCheckIntervalSeconds"]),
            float(group["HealthCheckTimeoutSeconds"]),
            int(group["HealthyThresholdCount"]),
            int(group["UnhealthyThresholdCount"]),
            frozenset(_codes(str(group["Matcher"]["HttpCode"]))),
            float(attributes.get("deregistration_delay.timeout_seconds", 300)),
            attributes.get("load_balancing.algorithm.type") == "least_outstanding_requests",
        )


def _codes(matcher: str) -> list[int]:
    """Return the codes of ``200``, ``200,202`` or ``200-299`` (API Matcher)."""
    found: list[int] = []
    for part in matcher.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@dataclass
class RegisteredTarget:
    """A registered target. `ends_at` is when its deregistration delay is over."""

    address: str
    port: int
    state: TargetState = TargetState.INITIAL
    streak: int = 0
    open_requests: int = 0
    ends_at: float | None = None
    closed: threading.Event = field(default_factory=threading.Event)

    def add_check(self, settings: GroupSettings, *, passed: bool) -> None:
        """Take the result of a health check."""
        if self.state is TargetState.DRAINING:
            return
        if self.state is (TargetState.HEALTHY if passed else TargetState.UNHEALTHY):
            self.streak = 0
            return
        self.streak += 1
        limit = settings.healthy_threshold if passed else settings.unhealthy_threshold
        if self.state is TargetState.INITIAL and passed:
            limit = 1
        if self.streak >= limit:
            self.state = TargetState.HEALTHY if passed else TargetState.UNHEALTHY
            self.streak = 0


class TargetTable:
    """The targets of every group. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._targets: dict[str, list[RegisteredTarget]] = {}
        self._turns = itertools.count()

    def add(self, group: str, address: str, port: int) -> RegisteredTarget | None:
        """Register a target, unless it is registered."""
        with self._lock:
            found = self._find(group, address, port)
            if found is not None and found.state is not TargetState.DRAINING:
                return None
            target = RegisteredTarget(address, port)
            self._targets.setdefault(group, []).append(target)
            return target

    def drain(self, group: str, address: str, port: int, ends_at: float) -> None:
        """Begin to deregister a target."""
        with self._lock:
            found = self._find(group, address, port)
            if found is not None and found.state is not TargetState.DRAINING:
                found.state, found.ends_at = TargetState.DRAINING, ends_at

    def find(self, group: str, address: str, port: int, now: float) -> RegisteredTarget | None:
        """Return a target; None once it is unused."""
        with self._lock:
            found = self._find(group, address, port)
            if found is None or found.ends_at is None or (found.open_requests and now < found.ends_at):
                return found
            self._targets[group].remove(found)
            found.closed.set()
            return None

    def choose(self, group: str, *, least_outstanding: bool) -> RegisteredTarget | None:
        """Choose the target of a request, and count the request."""
        with self._lock:
            registered = [
                each for each in self._targets.get(group, ()) if each.state is not TargetState.DRAINING
            ]
            usable = [each for each in registered if each.state is TargetState.HEALTHY] or registered
            if not usable:
                return None
            turn = next(self._turns)
            order = usable[turn % len(usable) :] + usable[: turn % len(usable)]
            chosen = min(order, key=lambda each: each.open_requests) if least_outstanding else order[0]
            chosen.open_requests += 1
            return chosen

    def finish(self, target: RegisteredTarget) -> None:
        """Take note that a request has ended."""
        with self._lock:
            target.open_requests -= 1

    def open_requests(self, group: str) -> int:
        """Return how many requests the targets of a group answer."""
        with self._lock:
            return sum(each.open_requests for each in self._targets.get(group, ()))

    def states(self, group: str) -> dict[str, str]:
        """Return the state of each target of a group by its address."""
        with self._lock:
            return {f"{each.address}:{each.port}": str(each.state) for each in self._targets.get(group, ())}

    def _find(self, group: str, address: str, port: int) -> RegisteredTarget | None:
        for each in reversed(self._targets.get(group, [])):
            if (each.address, each.port) == (address, port):
                return each
        return None
