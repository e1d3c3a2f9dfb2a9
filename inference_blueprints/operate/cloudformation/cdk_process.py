"""Runs the CDK command line as a child process, reads its output, and lets it ask questions."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from typing import Protocol

from inference_blueprints import tools

_READ_BYTES = 65536
_PATIENCE_SECONDS = 0.2


class Listener(Protocol):
    """Receives the output of the command line."""

    def line(self, text: str) -> None:
        """Receive a complete line, without its line break."""

    def question(self, text: str) -> None:
        """Receive an incomplete line, which is a question to the user."""


def run_cdk(
    arguments: Sequence[str], environment: Mapping[str, str], listener: Listener, *, terminal: bool
) -> int:
    """Run the pinned CDK command line to its end.

    arguments: Arguments such as ``["deploy", "--all"]``.
    listener: Receives standard output and standard error.
    terminal: Whether to give the CDK a terminal: it asks for approval only if its output is one.
    Returns: Exit code.
    """
    reading, writing = pty.openpty() if terminal else os.pipe()
    if terminal:
        _copy_size(sys.stdout.fileno(), writing)
    command = [*tools.cdk(), *arguments, "--no-color"]
    try:
        with subprocess.Popen(command, env=dict(environment), stdout=writing, stderr=writing) as process:
            os.close(writing)
            try:
                _listen(reading, listener)
            except BaseException:
                process.terminate()
                raise
    finally:
        os.close(reading)
    return process.returncode


def _copy_size(source: int, target: int) -> None:
    """Give one terminal the rows and columns of another."""
    size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _listen(descriptor: int, listener: Listener) -> None:
    """Pass on lines until the other side is closed, and incomplete ones if nothing follows for a moment."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    part = ""
    while True:
        ready, _, _ = select.select([descriptor], [], [], _PATIENCE_SECONDS)
        if not ready:
            if part.strip():
                listener.question(part)
                part = ""
            continue
        read = _read(descriptor)
        *lines, part = (part + decoder.decode(read, final=not read)).replace("\r\n", "\n").split("\n")
        for line in lines:
            listener.line(line)
        if not read:
            break
    if part:
        listener.line(part)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:  # Linux raises this when the other side of a terminal is closed
        return b""
