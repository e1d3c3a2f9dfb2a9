"""Opens listening ports on this machine for frontends inside a network namespace."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType

from inference_local.serving import relay

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
