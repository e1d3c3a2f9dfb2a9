"""What the control plane needs from outside, and what it tells."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from inference_local.emulator.ecs.control.cluster_state import (
    EcsInstance,
    EcsService,
    EcsTask,
    Shape,
)
from inference_local.emulator.ecs.control.host_scaling import HostSize

_KEPT_EVENTS = 100


class TaskRunner(Protocol):
    """Runs the containers of tasks. No call waits; the results come as observations."""

    def start(self, task: EcsTask, instance: EcsInstance | None, /) -> None:
        """Start a task. Its address and GPU ids are chosen. Without an instance it is a task of Fargate."""

    def stop(self, task: EcsTask) -> None:
        """Stop a task as ``docker stop`` does."""

    def kill_host(self, tasks: list[EcsTask]) -> None:
        """End every process of these tasks at once, as the loss of their host does."""


class TargetGroups(Protocol):
    """Target groups of load balancers."""

    def register(self, group: str, address: str, port: int, /) -> None:
        """Register a target, by the ARN of its group."""

    def deregister(self, group: str, address: str, port: int, /) -> None:
        """Begin to deregister a target."""

    def is_healthy(self, group: str, address: str, port: int, /) -> bool:
        """Whether the health checks of a target pass."""

    def is_unused(self, group: str, address: str, port: int, /) -> bool:
        """Whether a target has ended its deregistration."""


class NoTargetGroups:
    """Stands for target groups where there are none: targets are healthy, and unused once deregistered."""

    def register(self, *_: object) -> None:
        """Do nothing."""

    def deregister(self, *_: object) -> None:
        """Do nothing."""

    def is_healthy(self, *_: object) -> bool:
        """Return True."""
        return True

    def is_unused(self, *_: object) -> bool:
        """Return True."""
        return True


class ServiceNames(Protocol):
    """Names that AWS Cloud Map keeps for the tasks of services (service-discovery.html)."""

    def register(self, registry: str, task: str, address: str, /) -> None:
        """Add a task's address to a name, by the ARN of its Cloud Map service."""

    def deregister(self, registry: str, task: str, /) -> None:
        """Remove a task from a name."""

    def refresh(self) -> None:
        """Take the names of load balancers as they are now."""


class NoServiceNames:
    """Stands for Cloud Map where there is none."""

    def register(self, *_: object) -> None:
        """Do nothing."""

    def deregister(self, *_: object) -> None:
        """Do nothing."""

    def refresh(self) -> None:
        """Do nothing."""


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass
class Dependencies:
    """What the parts of the control plane share."""

    runner: TaskRunner
    """The agent."""
    host_size: Callable[[str], HostSize]
    """What an instance of a type registers."""
    targets: TargetGroups = field(default_factory=NoTargetGroups)
    tell: Callable[[str, Mapping[str, Any]], None] = lambda _kind, _detail: None
    """Called with the detail type and the detail of each event for EventBridge."""
    definitions: dict[str, Shape] = field(default_factory=dict)
    """Task definitions by ARN, as the API describes them."""
    new_id: Callable[[], str] = _new_id
    """Returns a new id of 32 hexadecimal digits."""
    boot_seconds: float = 30.0
    """Time from the launch of an instance to its registration. 30 s is ours; AWS documents none."""
    names: ServiceNames = field(default_factory=NoServiceNames)
    """Names of services in the VPC."""
    address_prefix: str = "127.64"
    """First two bytes of addresses of hosts and tasks. By default, loopback addresses."""
    _addresses: int = 0

    def new_address(self) -> str:
        """Return an address of the VPC that nothing has had."""
        self._addresses += 1
        high, low = divmod(self._addresses, 250)
        return f"{self.address_prefix}.{high}.{low + 1}"

    def service_event(self, service: EcsService, now: float, message: str) -> None:
        """Add an event to a service, unless the last one says the same.

        "duplicate event messages are omitted until either the cause is resolved or six hours passes"
        (service-event-messages.html); the 100 newest are kept.
        """
        text = f"(service {service.name}) {message}"
        if service.events and service.events[0][2] == text:
            return
        service.events.insert(0, (now, str(uuid.UUID(self.new_id())), text))
        del service.events[_KEPT_EVENTS:]
