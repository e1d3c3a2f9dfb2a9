"""The frontend processes of a local run, and the routes of the relay that lead to them."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType

from inference_local.serving import relay
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.relay import Route

# Opens listening ports on this machine for frontends inside a network namespace.

_BACKLOG = 1024
_ANY_PORT = 0
_FREE_PORTS: Mapping[str, int] = MappingProxyType({})


def open_listeners(
    routes: Mapping[str, relay.Route],
    start: Callable[[Sequence[str], Sequence[int]], object],
    ports: Mapping[str, int] = _FREE_PORTS,
) -> dict[str, int]:
    """Listen on a loopback port for each route, and pass the sockets to the relay.

    routes: Routes by name.
    start: Starts the relay, given its command and the file descriptors that it inherits.
    ports: Ports of some routes, by name. Others get a free one.
    Returns: Port by name.
    """
    with ExitStack() as sockets:
        listeners = {
            name: sockets.enter_context(
                socket.create_server(("127.0.0.1", ports.get(name, _ANY_PORT)), backlog=_BACKLOG)
            )
            for name in routes
        }
        arguments = [
            {
                "listener": listeners[name].fileno(),
                "targets": route.targets,
                "answerTokens": route.answer_tokens,
                "engines": route.engines,
                "address": route.address,
                "pages": route.pages,
                "structured": route.structured,
                "aliases": route.aliases,
                "images": route.images
                and {
                    "perRequest": route.images.per_request,
                    "tokens": route.images.tokens,
                    "domains": route.images.domains,
                },
            }
            for name, route in routes.items()
        ]
        command = [sys.executable, "-I", "-m", relay.__name__, json.dumps(arguments)]
        start(command, [listener.fileno() for listener in listeners.values()])
        return {name: listener.getsockname()[1] for name, listener in listeners.items()}


@dataclass(frozen=True, slots=True)
class FrontendProcess:
    """One frontend process and the port on which it listens, inside the namespace."""

    name: str
    deployment: LocalDeployment
    port: int

    @property
    def weight(self) -> float:
        """Its share of the model's requests: the accelerators behind it."""
        return self.deployment.plan.accelerator_count / self.deployment.frontend.replicas


def routes(
    frontends: Sequence[FrontendProcess], addresses: Mapping[str, Collection[str]], mark: str
) -> dict[str, Route]:
    """Return a route to each frontend, and one route per address to all of its frontends in turn.

    addresses: Releases of the deployments behind each address of a model.
    mark: Kind of the engines, for the header of responses.
    """
    by_address = {
        address: [each for each in frontends if each.deployment.plan.release in releases]
        for address, releases in addresses.items()
    }
    alone = {frontend.name: _route([(frontend, 1.0)], mark) for frontend in frontends}
    together = {
        address: _route([(frontend, frontend.weight) for frontend in group], mark)
        for address, group in by_address.items()
    }
    return {**alone, **together}


def _route(weighted: Sequence[tuple[FrontendProcess, float]], mark: str) -> Route:
    first = weighted[0][0].deployment
    ports = tuple((frontend.port, weight) for frontend, weight in weighted)
    structured = tuple(
        frontend.port for frontend, _ in weighted if frontend.deployment.answers_with_structure_apart
    )
    aliases = first.aliases if structured else ()
    return Route(ports, first.answer_tokens, first.images, mark, structured=structured, aliases=aliases)
