"""Free ports for programs that cannot inherit a listening socket."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack


def first_free_port(address: str, start: int) -> int:
    """Return the first port, from a number on, that no program of this machine listens on.

    Parameters
    ----------
    address
        An address of the loopback network.
    start
        The first port to try.
    """
    port = start
    while True:
        try:
            socket.create_server((address, port)).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            port += 1
        else:
            return port


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
