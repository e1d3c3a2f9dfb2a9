"""Isolates the processes that serve the models from this machine's network.

Dynamo's event sockets listen on every interface and ignore their host variables (1.6.1), so its processes
run in a network namespace that has only loopback.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_local.processes.child_processes import ProcessDied, ProcessGroup, RunningProcess
from inference_local.serving import namespace

_PROGRAM = [sys.executable, "-I", "-S", namespace.__file__]
_TIMEOUT_SECONDS = 20.0
_STATUS_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder that commands find at another path."""

    source: Path
    """The folder."""
    path: str
    """Where they find it."""
    read_only: bool = False
    """Whether they may only read it."""


def with_mounts(command: Sequence[str], mounts: Sequence[Mount], folder: Path) -> list[str]:
    """Return a command that runs another one with mounts, within an isolation that is opened `as_root`.

    folder: Existing folder for what this needs.
    """
    root, document = folder / "root", folder / "mounts.json"
    root.mkdir(exist_ok=True)
    content = [{"source": str(each.source), "path": each.path, "readOnly": each.read_only} for each in mounts]
    document.write_text(json.dumps({"root": str(root), "mounts": content}), encoding="utf-8")
    return [*_PROGRAM, "mount", str(document), *command]


@dataclass(frozen=True, slots=True)
class Isolation:
    """The network that commands run in."""

    holder: int | None
    """Process id that holds the namespace. None if commands run in this machine's own network."""
    reason: str = ""
    """Why there is no namespace. Empty if there is one."""

    def command(self, command: Sequence[str | Path], hosts: Path | None = None) -> list[str]:
        """Return a command that runs another command in this network.

        hosts: File that the command and its children read as ``/etc/hosts``. None for that of the machine.
        """
        words = [str(word) for word in command]
        if self.holder is None:
            return words
        join = (
            ["join", str(self.holder)] if hosts is None else ["join-with-hosts", str(self.holder), str(hosts)]
        )
        return [*_PROGRAM, *join, *words]


def started_in(
    processes: ProcessGroup, log_path: Path, name: str = "network"
) -> Callable[[Sequence[str], Sequence[int]], RunningProcess]:
    """Return what starts a holding process in a group, for `open_isolation`.

    log_path: File for its output.
    name: Name of the process.
    """

    def start(command: Sequence[str], descriptors: Sequence[int]) -> RunningProcess:
        return processes.start(name, command, environment={}, log_path=log_path, pass_fds=descriptors)

    return start


def open_isolation(
    start: Callable[[Sequence[str], Sequence[int]], RunningProcess], *, as_root: bool = False
) -> Isolation:
    """Create a network namespace, or return the reason why this machine does not allow one.

    For an ordinary user, the holder is also in a user namespace, without permissions outside it.

    start: Starts the holding process, given its command and the file descriptors that it inherits.
    as_root: Whether commands may create further namespaces and interfaces inside the network.
    Raises ProcessDied if the holding process ends before it reports its status. Raises TimeoutError if it
        reports no status in time.
    """
    reader, writer = os.pipe()
    try:
        holder = start([*_PROGRAM, "hold-as-root" if as_root else "hold", str(writer)], [writer])
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        if not select.select([pipe], [], [], _TIMEOUT_SECONDS)[0]:
            raise TimeoutError(f"no network namespace after {_TIMEOUT_SECONDS:.0f} s; see {holder.log_path}")
        status = (pipe.read(_STATUS_BYTES) or b"").decode()
    if not status:
        raise ProcessDied(holder.name, holder.popen.wait(_TIMEOUT_SECONDS), holder.log_path)
    return Isolation(holder.pid) if status == namespace.ISOLATED else Isolation(None, status)
