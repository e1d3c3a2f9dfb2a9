"""Free ports for programs that cannot inherit a listening socket."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Return unused loopback ports, chosen by the operating system.

    Parameters
    ----------
    count
        Number of ports. All are different.
    """
    with ExitStack() as sockets:
        taken = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in taken]
