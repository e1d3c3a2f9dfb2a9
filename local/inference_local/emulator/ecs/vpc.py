"""The VPC of an isolated emulator: names and the load balancer of tasks, from ministack's records."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from socket import create_server, socket
from typing import Any, Final

from ministack.services import alb, servicediscovery

from inference_local.emulator.ecs.network.cloud_map_names import CloudMapNames
from inference_local.emulator.ecs.network.load_balancer import LoadBalancer
from inference_local.emulator.ecs.network.target_health import GroupSettings
from inference_local.emulator.ecs.network.task_networks import VPC_ADDRESS

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
