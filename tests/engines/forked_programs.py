"""Starts programs of vLLM's environment that share one import of the library, and ends them together.

It runs in vLLM's environment. The argument is a JSON list of programs: `module`, `arguments`, `environment` and
`log`. Importing vLLM takes longer than everything else that a small model's engine does.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from typing import Any

import vllm.entrypoints.cli.main
import vllm.entrypoints.openai.api_server
import vllm.v1.engine.async_llm
import vllm.v1.engine.core  # noqa: F401 - imported for the children


def _child(program: dict[str, Any]) -> None:
    os.setpgid(0, 0)
    os.environ.update(program["environment"])
    log = os.open(program["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.argv = [program["module"], *program["arguments"]]
    runpy.run_module(program["module"], run_name="__main__", alter_sys=True)


def main() -> None:
    """Start the programs, and end them when standard input closes."""
    children = []
    for program in json.loads(sys.argv[1]):
        child = os.fork()
        if child == 0:
            try:
                _child(program)
            finally:
                os._exit(1)
        children.append(child)
    sys.stdin.read()
    for end in (signal.SIGTERM, signal.SIGKILL):
        for child in children:
            try:
                os.killpg(child, end)
            except ProcessLookupError:
                continue
        if end is signal.SIGTERM:
            signal.alarm(60)
            signal.signal(signal.SIGALRM, lambda *_: None)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
