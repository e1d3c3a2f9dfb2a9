"""Ports of a task that shares its host's network with other tasks.

A block of ports is owned by the process that binds an abstract Unix socket of its number. Such a socket
belongs to the network namespace, like the ports themselves, has no file that a killed process could leave
behind, and is free as soon as no process has it open (unix(7), "Abstract"). It stays open in the engine over
exec. The blocks lie below the ports that Linux gives away by itself, from 32768 (ip_local_port_range in
ip(7)).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from task_start.start_document import PORTS_PER_BLOCK, TaskStartError

#: First port of the first block.
FIRST_PORT = 20_000
#: Blocks of a host: more than workers that a host has accelerators for.
BLOCKS = 64


def take_block(address: str, names: Mapping[str, int]) -> dict[str, int]:
    """Take the first free block of a host, until the process and those that replace it have ended.

    A block is not free if another program listens on one of the named ports.

    address: The host's address. Hosts on one machine, as in a local run, have blocks of their own.
    names: Position of each port in the block.
    Returns: Number of each port.
    Raises TaskStartError if every block is taken.
    """
    for block in range(BLOCKS):
        first = FIRST_PORT + block * PORTS_PER_BLOCK
        ports = {name: first + place for name, place in names.items()}
        # Not closed here: the open descriptor is the lock.
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holder.bind(f"\0inference-blueprints/{address}/{block}")
        except OSError:
            holder.close()
            continue
        if all(_is_free(address, port) for port in ports.values()):
            os.set_inheritable(holder.detach(), True)  # noqa: FBT003 - positional only
            return ports
        holder.close()
    raise TaskStartError(
        f"all {BLOCKS} blocks of ports of {address} are taken: too many tasks run on this host"
    )


def _is_free(address: str, port: int) -> bool:
    """Whether an engine can listen on a port, also if connections of a former engine are still ending."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
