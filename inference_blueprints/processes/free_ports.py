"""Ports of this machine for programs that cannot be handed a listening socket."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens on, as the operating system chooses them.

    Parameters
    ----------
    count
        How many, each different.
    """
    with ExitStack() as sockets:
        taken = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in taken]
