"""Renders prompts in a child process with limited memory and processor time.

The sandbox of Jinja2 decides what a template may do, but not what it may cost: comparing or printing nested
lists can take any amount of time and memory inside one instruction. So the operating system limits a process
that has nothing else to do, no credentials, and no other team's data. Only checking renders templates.
Workers get the finished bodies.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from inference_contracts.prompt_template import RenderingError

_PROCESS: Final = "batch.preparation.prompt_process"
#: Time for a child whose socket is closed to end.
_PATIENCE_SECONDS: Final = 10.0


class CostlyTemplateError(Exception):
    """Rendering exceeded a limit of memory or time. No further row is rendered."""


@dataclass(frozen=True, slots=True)
class RenderingLimits:
    """What rendering may cost."""

    memory_bytes: int = 512 * 2**20
    """Address space of the process (``RLIMIT_AS``), with Python and Jinja2 themselves."""
    row_seconds: int = 5
    """Processor time of one row."""
    total_seconds: int = 300
    """Processor time of all rows of a segment (``RLIMIT_CPU``)."""


LIMITS: Final = RenderingLimits()


class PromptRenderer:
    """The template of a job. Close it after use.

    text: Jinja2 template.
    max_characters: Longest prompt.
    limits: What rendering may cost.
    Raises RenderingError if the text is not a valid template, or uses a forbidden feature. Raises
        CostlyTemplateError if compiling it exceeds a limit.
    """

    def __init__(self, text: str, *, max_characters: int, limits: RenderingLimits = LIMITS) -> None:
        self._limits = limits
        own, others = socket.socketpair()
        with others:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", _PROCESS, str(others.fileno()), str(limits.memory_bytes)),
                    *(str(limits.row_seconds), str(limits.total_seconds)),
                ],
                pass_fds=[others.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Not the variables of this process: they contain credentials.
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MALLOC_ARENA_MAX": "1"},
            )
        self._link = Connection(own.detach())
        try:
            self._ask({"text": text, "most_characters": max_characters})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        self._link.close()
        self._process.kill()
        self._process.wait()

    def render(self, row: Mapping[str, Any]) -> str:
        """Return the prompt of a row.

        Raises RenderingError if the row does not fit the template. Raises CostlyTemplateError if rendering it
        exceeds a limit.
        """
        return self._ask({"row": row})

    def _ask(self, question: Mapping[str, Any]) -> str:
        """Send a request to the process, and return its answer."""
        try:
            self._link.send_bytes(json.dumps(question).encode())
            answer = json.loads(self._link.recv_bytes())
        except (EOFError, ConnectionError) as error:
            raise CostlyTemplateError(self._ending()) from error
        if "too_costly" in answer:
            raise CostlyTemplateError(answer["too_costly"])
        if "wrong" in answer:
            raise RenderingError(answer["wrong"])
        return str(answer["prompt"])

    def _ending(self) -> str:
        """Return the reason why the process ended."""
        try:
            code = self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            return "template: rendering stopped answering"
        limits = self._limits
        if code == -signal.SIGXCPU:
            return f"template: rendering a row takes more than {limits.row_seconds} s of processor time"
        if code == -signal.SIGKILL:
            return (
                f"template: rendering one part of the input takes more than {limits.total_seconds} s of "
                "processor time, or more memory than there is"
            )
        return f"template: rendering ended unexpectedly with code {code}"
