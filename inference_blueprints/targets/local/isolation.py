"""Keeps what serves the models off this machine's network.

Dynamo's event sockets listen on every interface, whatever their host variables say (1.6.1), so its processes
run in a network namespace that has only loopback.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.processes.child_processes import ProcessDied, RunningProcess
from inference_blueprints.targets.local import namespace

_PROGRAM = [sys.executable, "-I", "-S", namespace.__file__]
_TIMEOUT_SECONDS = 20.0
_STATUS_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Isolation:
    """Where commands run.

    Parameters
    ----------
    holder
        Process id that holds the namespace; None when commands run in this machine's own.
    reason
        Why there is no namespace; empty when there is one.
    """

    holder: int | None
    reason: str = ""

    def command(self, command: Sequence[str | Path]) -> list[str]:
        """Return the command that runs another one there."""
        words = [str(word) for word in command]
        return words if self.holder is None else [*_PROGRAM, "join", str(self.holder), *words]


def open_isolation(start: Callable[[Sequence[str], Sequence[int]], RunningProcess]) -> Isolation:
    """Create a network namespace, or tell why this machine has none to give.

    As an ordinary user the holder lives in a user namespace too, with no rights outside it.

    Parameters
    ----------
    start
        Starts the holding process, given its command and the file descriptors that it inherits.

    Raises
    ------
    ProcessDied
        If the holding process ends before it has reported.
    TimeoutError
        If it does not report.
    """
    reader, writer = os.pipe()
    try:
        holder = start([*_PROGRAM, "hold", str(writer)], [writer])
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        if not select.select([pipe], [], [], _TIMEOUT_SECONDS)[0]:
            raise TimeoutError(f"no network namespace after {_TIMEOUT_SECONDS:.0f} s; see {holder.log_path}")
        status = (pipe.read(_STATUS_BYTES) or b"").decode()
    if not status:
        raise ProcessDied(holder.name, holder.popen.wait(_TIMEOUT_SECONDS), holder.log_path)
    return Isolation(holder.pid) if status == namespace.ISOLATED else Isolation(None, status)
