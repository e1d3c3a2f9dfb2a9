"""Kills the processes of a group whose program died without ending them.

Run as ``python -I -S orphan_killer.py VARIABLE VALUE``, with a pipe from the program as standard input. The
kernel closes the pipe when the program dies, even by SIGKILL. A separate program, because the death signal of
prctl(2) reaches children only, and not the processes that children start. Members of the group have the
variable with the value in their environment, see proc_pid_environ(5).
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

#: What the program writes when it has ended its processes itself.
DONE = b"."
# A process may start others while it is killed.
_PASSES, _PAUSE_SECONDS = 50, 0.1


def main(variable: str, value: str) -> None:
    """Wait until the program writes or dies; if it died, kill the members until none is left."""
    if sys.stdin.buffer.read(1) == DONE:
        return
    mark = f"{variable}={value}".encode()
    for _ in range(_PASSES):
        found = list(_members(mark))
        if not found:
            return
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_PAUSE_SECONDS)


def _members(mark: bytes) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:  # it has ended, or belongs to another user
                continue
            if mark in variables:
                yield int(folder.name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
