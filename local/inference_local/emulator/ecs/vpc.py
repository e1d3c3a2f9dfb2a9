"""The VPC of an isolated emulator: names and the load balancer of tasks, from ministack's records."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import create_server, socket
from typing import Any, Final

from ministack.services import alb, servicediscovery

from inference_local.emulator.ecs.network.load_balancer import GroupSettings, LoadBalancer
from inference_local.emulator.ecs.network.task_networks import VPC_ADDRESS

# Names of tasks in the VPC: the records of AWS Cloud Map as lines of the tasks' ``/etc/hosts``.
#
# Sources: service-discovery.html (a service with ``serviceRegistries`` registers each task;
# AWS_INSTANCE_IPV4: "For an A record, the IPv4 address that Route 53 returns"), API RegisterInstance of AWS
# Cloud Map. The names of models, which a private zone of Route 53 leads to the load balancer, are lines too.


class CloudMapNames:
    """Writes the file at every change.

    file: The file. Tasks read this file itself, so it is never replaced.
    name_of: Returns the DNS name of a Cloud Map service by its ARN.
    others: Returns further lines of the file.
    """

    def __init__(
        self, file: Path, name_of: Callable[[str], str], others: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._file = file
        self._others = others
        self._name_of = name_of
        self._lock = threading.Lock()
        self._records: dict[tuple[str, str], str] = {}

    def register(self, registry: str, task: str, address: str) -> None:
        """Add a task's address to a name."""
        with self._lock:
            self._records[self._name_of(registry), task] = address
            self._write()

    def deregister(self, registry: str, task: str) -> None:
        """Remove a task from a name."""
        with self._lock:
            if self._records.pop((self._name_of(registry), task), None):
                self._write()

    def refresh(self) -> None:
        """Write the file with the further lines as they are now."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        lines = [f"{address} {name}" for (name, _), address in sorted(self._records.items())]
        with self._file.open("r+") as file:
            file.write("\n".join(["127.0.0.1 localhost", *self._others(), *lines, ""]))
            file.truncate()


_PORT: Final = 80


@dataclass(frozen=True)
class Vpc:
    """What the VPC needs from outside."""

    names: Path
    """File that tasks read as ``/etc/hosts``."""
    listener: socket
    """Listening socket of the load balancer."""

    def cloud_map(self, context: contextvars.Context, balancer: LoadBalancer) -> CloudMapNames:
        """Return the names of Cloud Map and of models, in the account and region of a context."""
        return CloudMapNames(
            self.names,
            lambda arn: str(_run(context, lambda: _name_of(arn))),
            lambda: [f"{VPC_ADDRESS} {name}" for name in balancer.names()],
        )

    def load_balancer(self, context: contextvars.Context, speed: float) -> LoadBalancer:
        """Start the load balancer, in the account and region of a context."""
        return LoadBalancer(
            [self.listener, create_server((VPC_ADDRESS, _PORT))],
            lambda: list(_run(context, lambda: list(alb._rules.values()))),
            lambda group: _run(context, lambda: _settings(group)),
            speed,
        )


def _run(context: contextvars.Context, call: Callable[[], Any]) -> Any:
    """Call in a copy of the context: several threads ask at the same time."""
    return context.copy().run(call)


def _name_of(arn: str) -> str:
    service = servicediscovery._services[arn.rpartition("/")[2]]
    return f"{service['Name']}.{servicediscovery._namespaces[service['NamespaceId']]['Name']}"


def _settings(group: str) -> GroupSettings:
    attributes = {each["Key"]: each["Value"] for each in alb._tg_attrs[group]}
    return GroupSettings.of(alb._tgs[group], attributes)
