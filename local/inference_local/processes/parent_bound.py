"""Replaces itself by a command that the kernel kills when the parent dies.

Run as ``python -I -S parent_bound.py PARENT_PID COMMAND [ARGUMENT …]``. It is a separate program,
because the kernel binds the death signal to the process that requests it, and a request between fork and exec
in a multi-threaded parent is unsafe (``subprocess``: ``preexec_fn``). Source: prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CANNOT_EXECUTE = 127


def main(parent: int, command: list[str]) -> None:
    """Request the death signal, then run the command in this process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the request, so no signal will arrive
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming the command is this program's purpose
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
