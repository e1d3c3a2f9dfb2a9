"""Starts programs of vLLM's environment that share one import of the library, and ends them together.

It runs in vLLM's environment. The argument is a JSON list of programs, each with `module`, `arguments`,
`environment` and `log`. Importing vLLM takes longer than anything else that the engine of a small model does.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
from typing import Any

# Before any import starts a thread: all threads get this mask, and only `main` waits for these signals.
_ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)

import vllm.entrypoints.cli.main  # noqa: E402 - for the children
import vllm.entrypoints.openai.api_server  # noqa: E402 - for the children
import vllm.v1.engine.async_llm  # noqa: E402 - for the children
import vllm.v1.engine.core  # noqa: E402, F401 - for the children


def _child(program: dict[str, Any]) -> None:
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    os.environ.update(program["environment"])
    log = os.open(program["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.argv = [program["module"], *program["arguments"]]
    runpy.run_module(program["module"], run_name="__main__", alter_sys=True)


def _ended(children: list[int]) -> bool:
    """Return whether one of the programs ended: a SIGCHLD may be of a process that an import started."""
    return any(os.waitpid(child, os.WNOHANG) != (0, 0) for child in children)


def main() -> None:
    """Start the programs. The first of them that ends, or a signal, ends all."""
    children = []
    for program in json.loads(sys.argv[1]):
        child = os.fork()
        if child == 0:
            try:
                _child(program)
            finally:
                os._exit(1)
        children.append(child)
    while signal.sigwait(_ENDS) == signal.SIGCHLD and not _ended(children):
        pass
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGTERM)
    for child in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
