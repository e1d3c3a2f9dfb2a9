"""A stand-in for the Application Load Balancer of tasks: rules, targets, health checks, draining.

Sources: listener-rules.html (rules in the order of their priority; weights of forward actions),
rule-condition-types.html (host headers and paths), load-balancer-troubleshooting.html (502: the target does
not answer or closes the connection; 503: no registered targets), and those of targets below. TLS is left
out: it listens on one loopback port outside the namespace of the tasks, and on port 80 of an address that
tasks reach.
"""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from inference_local.serving.http_forwarding import (
    application,
    carry,
    forward,
    forwarding_session,
)

# Targets of a load balancer and their health.
#
# Sources (Elastic Load Balancing, "Target groups for your Application Load Balancers"):
# target-group-health-checks.html (states; thresholds; "If a target group contains only unhealthy registered
# targets, the load balancer routes requests to all those targets"; "After your target is registered, it must
# pass one health check to be considered healthy"), edit-target-group-attributes.html (deregistration delay:
# "If a deregistering target has no in-flight requests and no active connections, Elastic Load Balancing
# immediately completes the deregistration process"; least outstanding requests). Here an idle target is
# unused at once, where AWS shows it as draining until the end of the delay: tasks get SIGTERM earlier than
# there, never later.


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


_LOOK_SECONDS: Final = 0.1


class LoadBalancer:
    """Answers on a socket. It is the `TargetGroups` of the control plane. Use `close` at the end.

    listeners: Listening sockets.
    rules: Returns the rules of the listener (API Rule), in any order.
    settings: Returns the settings of a target group.
    speed: How much faster than time the intervals of health checks are. Requests and the deregistration delay
        are not changed.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        rules: Callable[[], Sequence[Mapping[str, Any]]],
        settings: Callable[[str], GroupSettings],
        speed: float,
    ) -> None:
        self._listeners = listeners
        self._rules = rules
        self._settings = settings
        self._speed = speed
        self._table = TargetTable()
        self._loop = asyncio.new_event_loop()
        self._checks: set[asyncio.Task[None]] = set()
        self._session: ClientSession | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load-balancer", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Stop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def register(self, group: str, address: str, port: int) -> None:
        """Register a target, and check it until it is unused."""
        target = self._table.add(group, address, port)
        if target is not None:
            settings = self._settings(group)
            self._loop.call_soon_threadsafe(self._begin_checks, settings, target)

    def deregister(self, group: str, address: str, port: int) -> None:
        """Begin to deregister a target."""
        self._table.drain(group, address, port, time.monotonic() + self._settings(group).delay)

    def is_healthy(self, group: str, address: str, port: int) -> bool:
        """Whether the health checks of a target pass."""
        target = self._table.find(group, address, port, time.monotonic())
        return target is not None and target.state is TargetState.HEALTHY

    def is_unused(self, group: str, address: str, port: int) -> bool:
        """Whether a target has ended its deregistration."""
        return self._table.find(group, address, port, time.monotonic()) is None

    def states(self, group: str) -> dict[str, str]:
        """Return the state of each target of a group by its address."""
        return self._table.states(group)

    def names(self) -> list[str]:
        """Return the host names of its rules, without those that have wildcards."""
        conditions = (condition for rule in self._rules() for condition in rule.get("Conditions", ()))
        values = {name for condition in conditions for name in condition.get("Values", ())}
        return sorted(name for name in values if not set(name) & set("*?"))

    def open_requests(self, group: str) -> int:
        """Return how many requests the targets of a group answer."""
        return self._table.open_requests(group)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = application(self._answer)
        self._loop.run_until_complete(self._start(runner))
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._end(runner))
        self._loop.close()

    async def _start(self, runner: web.AppRunner) -> None:
        self._session = forwarding_session()
        await runner.setup()
        for listener in self._listeners:
            await web.SockSite(runner, listener).start()

    async def _end(self, runner: web.AppRunner) -> None:
        for check in self._checks:
            check.cancel()
        await runner.cleanup()
        if self._session is not None:
            await self._session.close()

    def _begin_checks(self, settings: GroupSettings, target: RegisteredTarget) -> None:
        check = self._loop.create_task(self._check(settings, target))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _check(self, settings: GroupSettings, target: RegisteredTarget) -> None:
        """Check a target until it drains."""
        url = f"http://{target.address}:{target.port}{settings.path}"
        async with ClientSession(timeout=ClientTimeout(total=settings.timeout)) as session:
            while target.state is not TargetState.DRAINING:
                try:
                    async with session.get(url) as answer:
                        passed = answer.status in settings.codes
                except (ClientError, TimeoutError, OSError):
                    passed = False
                target.add_check(settings, passed=passed)
                await asyncio.sleep(settings.interval / self._speed)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        group = self._group(request.host, request.path)
        if group is None:
            return web.Response(status=404)
        target = self._table.choose(group, least_outstanding=self._settings(group).least_outstanding)
        if target is None:
            return web.Response(status=503)
        carried = self._loop.create_task(self._pass_on(request, target))
        try:
            while not carried.done():
                await asyncio.wait({carried}, timeout=_LOOK_SECONDS)
                if target.closed.is_set() and not carried.done() and request.transport is not None:
                    request.transport.close()  # "closes the connection" at the end of the delay
            return carried.result()
        finally:
            carried.cancel()
            self._table.finish(target)

    async def _pass_on(self, request: web.Request, target: RegisteredTarget) -> web.StreamResponse:
        if self._session is None:
            raise RuntimeError("the load balancer has not started")
        body = await request.read()
        try:
            answer = await forward(request, body, (target.address, target.port), self._session)
        except (ClientError, OSError):
            return web.Response(status=502)
        async with answer:
            return await carry(answer, request)

    def _group(self, host: str, path: str) -> str | None:
        """Return the target group of the first rule whose conditions hold; None for the default action."""
        name = host.partition(":")[0]
        numbered = [rule for rule in self._rules() if str(rule.get("Priority")) != "default"]
        for rule in sorted(numbered, key=lambda each: int(each["Priority"])):
            if all(_holds(condition, name, path) for condition in rule["Conditions"]):
                return _weighted(rule["Actions"])
        return None


def _holds(condition: Mapping[str, Any], host: str, path: str) -> bool:
    """Whether a condition holds; ``*`` and ``?`` are wildcards. Case counts in paths, and not in hosts."""
    field, values = condition["Field"], condition.get("Values") or ()
    if field == "host-header":
        return any(fnmatch.fnmatchcase(host.lower(), value.lower()) for value in values)
    if field == "path-pattern":
        values = values or condition["PathPatternConfig"]["Values"]
        return any(fnmatch.fnmatchcase(path, value) for value in values)
    raise ValueError(f"the stand-in for the load balancer has no condition {field}")


def _weighted(actions: Sequence[Mapping[str, Any]]) -> str | None:
    for action in actions:
        groups = (action.get("ForwardConfig") or {}).get("TargetGroups") or []
        if groups:
            weights = [int(each.get("Weight", 1)) for each in groups]
            return str(random.choices(groups, weights)[0]["TargetGroupArn"])  # noqa: S311 - not a secret
        if action.get("TargetGroupArn"):
            return str(action["TargetGroupArn"])
    return None
