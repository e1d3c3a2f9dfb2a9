"""The child process ``python -m batch.preparation.prompt_process SOCKET BYTES ROW_SECONDS TOTAL_SECONDS``.

The parent sends requests over the socket: first ``{"text": …, "most_characters": …}``, then any number of
``{"row": …}``. Each answer is ``{"prompt": …}``, ``{"wrong": reason}`` or ``{"too_costly": reason}``. If a
row takes too much processor time, the kernel ends the process.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from inference_contracts.prompt_template import Prompts, RenderingError
from inference_contracts.units import MIB

# Answers a request, and returns the function that answers the next one.
_Answer = Callable[[Mapping[str, Any]], "tuple[_Answer, dict[str, str]]"]


def main(socket: str, memory_bytes: str, row_seconds: str, total_seconds: str) -> None:
    """Answer requests until the parent closes the socket.

    socket: File descriptor of the socket.
    memory_bytes, row_seconds, total_seconds: Limits of the process.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes),) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(total_seconds),) * 2)
    too_large = f"template: rendering needs more than {int(memory_bytes) // MIB} MiB of memory"
    answer: _Answer = _first
    with Connection(int(socket)) as link:
        while True:
            try:
                content = link.recv_bytes()
            except EOFError:
                return
            _allow(int(row_seconds), int(total_seconds))
            try:
                answer, found = answer(json.loads(content))
                encoded = json.dumps(found).encode()
            except MemoryError:
                encoded = json.dumps({"too_costly": too_large}).encode()
            link.send_bytes(encoded)


def _first(question: Mapping[str, Any]) -> tuple[_Answer, dict[str, str]]:
    """Compile the template."""
    try:
        prompts = Prompts(question["text"], max_characters=question["most_characters"])
    except RenderingError as error:
        return _first, {"wrong": str(error)}

    def render(question: Mapping[str, Any]) -> tuple[_Answer, dict[str, str]]:
        try:
            return render, {"prompt": prompts.render(question["row"])}
        except RenderingError as error:
            return render, {"wrong": str(error)}

    return render, {"prompt": ""}


def _allow(row_seconds: int, total_seconds: int) -> None:
    """Allow some processor time beyond what is used. The kernel counts whole seconds."""
    allowed = int(time.process_time()) + 1 + row_seconds
    if allowed < total_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, total_seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
