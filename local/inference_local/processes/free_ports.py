"""Free ports for programs that cannot inherit a listening socket."""

from __future__ import annotations

import errno
import random
import socket
from contextlib import suppress

from inference_contracts.request_filter import LOOPBACK_PORTS, port_socket

_RESERVATIONS: list[socket.socket] = []  # open until this process ends


def first_free_port(address: str, start: int) -> int:
    """Return the first port, from a number on, that no program of this machine listens on.

    address: An address of the loopback network.
    start: The first port to try.
    """
    port = start
    while not _nobody_listens(address, port):
        port += 1
    return port


def free_ports(count: int) -> list[int]:
    """Return unused loopback ports. Until this process ends, no other call, in any process, returns them.

    count: Number of ports. All are different.
    Raises RuntimeError: Fewer ports are free.
    """
    found: list[int] = []
    candidates = iter(random.sample(LOOPBACK_PORTS, len(LOOPBACK_PORTS)))
    while len(found) < count:
        port = next(candidates, None)
        if port is None:
            raise RuntimeError(
                f"only {len(found)} of {count} ports from {LOOPBACK_PORTS[0]} to {LOOPBACK_PORTS[-1]} are "
                "free on 127.0.0.1: end programs that listen there"
            )
        if _reserve(port) and _nobody_listens("127.0.0.1", port):
            found.append(port)
    return found


def _nobody_listens(address: str, port: int) -> bool:
    try:
        socket.create_server((address, port)).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _reserve(port: int) -> bool:
    """Take a socket's name that one process of a network namespace has, until it ends (unix(7), abstract)."""
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with suppress(OSError):
        reservation.bind(port_socket(port))
        _RESERVATIONS.append(reservation)
        return True
    reservation.close()
    return False
