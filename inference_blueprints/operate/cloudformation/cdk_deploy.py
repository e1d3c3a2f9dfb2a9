"""Runs `cdk deploy` with a progress bar, the events of stacks, and readable errors."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from inference_blueprints import tools
from inference_blueprints.operate.cloudformation.stack_events import (
    ResourceEvent,
    advice,
    causes,
    finished_stack,
    parse_event,
    resource_counts,
)
from inference_blueprints.synthesis import app_command, app_environment
from inference_contracts.errors import UserError

# Runs the CDK command line as a child process, reads its output, and lets it ask questions.

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


_DEFAULT_OUTPUT = "cdk.out"
_OUTPUT_OPTIONS = ("--output", "-o")
#: Options of ``cdk deploy`` that count for the synthesis, too.
_SYNTHESIS_OPTIONS = ("--context", "-c", "--profile")
_FAILURE_MARKS = ("❌", "Error:", "failed:")
_LINES_KEPT = 3
#: The CDK's words if another CDK uses the folder (aws-cdk, toolkit-lib/lib/api/rwlock.ts), and for how long
#: they are no error.
_FOLDER_IN_USE = "Invoke the CLI in sequence"
_FOLDER_SECONDS, _FOLDER_POLL_SECONDS = 60.0, 2.0


def synthesise_for_deploy(name_or_path: str, arguments: Sequence[str]) -> Path:
    """Write the assembly that ``cdk deploy`` would write, with the CDK's own context.

    name_or_path: Name of a shipped blueprint, or path of a YAML file.
    arguments: Arguments for ``cdk deploy``.
    Returns: The folder: that of ``--output``, else ``cdk.out``.
    Raises UserError if the app fails, with its messages.
    """
    folder = _output_directory(arguments)
    shared = [word for option in _SYNTHESIS_OPTIONS for word in _given(arguments, option)]
    command = [*tools.cdk(), "synth", "--app", app_command(), "--output", str(folder), "--quiet", *shared]
    environment, deadline = app_environment(name_or_path), time.monotonic() + _FOLDER_SECONDS
    while True:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        # The CDK of a deployment that was killed may take some seconds to end.
        if not result.returncode or _FOLDER_IN_USE not in result.stderr or time.monotonic() > deadline:
            break
        time.sleep(_FOLDER_POLL_SECONDS)
    if result.returncode:
        raise UserError(result.stderr.strip() or f"cdk synth failed with code {result.returncode}")
    return folder


def deploy_assembly(name_or_path: str, assembly: Path, arguments: Sequence[str], console: Console) -> None:
    """Deploy every stack of an assembly.

    name_or_path: The blueprint, for commands in messages.
    assembly: The folder that ``cdk synth`` wrote.
    arguments: Arguments for ``cdk deploy``.
    console: Console for the progress: a bar in a terminal, else the CDK's lines.
    Raises UserError if it fails, with each failed resource, the reason and what to do.
    """
    others = _without(arguments, _OUTPUT_OPTIONS)
    words = ["deploy", "--app", str(assembly.resolve()), "--all", "--progress", "events", *others]
    with DeploymentProgress(console, assembly) as progress:
        code = run_cdk(words, app_environment(name_or_path), progress, terminal=console.is_terminal)
    if code:
        raise UserError(
            "\n".join([f"cdk deploy failed with code {code}", *progress.explanation(name_or_path)])
        )


def _output_directory(arguments: Sequence[str]) -> Path:
    """Return the folder of the CDK's templates."""
    given = [
        words[-1].rpartition("=")[2] for option in _OUTPUT_OPTIONS if (words := _given(arguments, option))
    ]
    return Path(given[0] if given else _DEFAULT_OUTPUT)


def _given(arguments: Sequence[str], option: str) -> list[str]:
    """Return every use of an option, with its value."""
    words: list[str] = []
    for word, following in pairwise([*arguments, ""]):
        if word == option:
            words += [word, following]
        elif option.startswith("--") and word.startswith(f"{option}="):
            words.append(word)
    return words


def _without(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return arguments without some options and their values."""
    others = []
    words = iter(arguments)
    for word in words:
        if word in options:
            next(words, None)
        elif word.partition("=")[0] not in options:
            others.append(word)
    return others


class DeploymentProgress:
    """Listens to ``cdk deploy``; a context manager.

    console: Console for the progress.
    assembly_directory: Folder of the CDK's templates, which exist before the first event; the bar counts
        their resources.
    """

    def __init__(self, console: Console, assembly_directory: Path) -> None:
        self._console = console
        self._directory = assembly_directory
        self._counts: Mapping[str, int] = {}
        self._complete: Counter[str] = Counter()
        self._failures: list[ResourceEvent] = []
        self._last_errors: list[str] = []
        columns = (
            TextColumn("deploy"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("resources"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task: TaskID | None = None

    def __enter__(self) -> DeploymentProgress:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bar.stop()

    @property
    def complete(self) -> int:
        """Number of resources that are ready, including those of unchanged stacks."""
        return sum(min(self._counts.get(stack, 0), done) for stack, done in self._complete.items())

    @property
    def total(self) -> int:
        """Number of resources of all stacks; 0 until there are templates."""
        return sum(self._counts.values())

    def line(self, text: str) -> None:
        """Show a line and count its event."""
        event, finished = parse_event(text), finished_stack(text)
        if event or finished:
            self._begin()
        if event:
            self._complete[event.stack] += event.is_complete
            if event.is_cause:
                self._failures.append(event)
        elif finished:
            self._complete[finished] = self._counts.get(finished, 0)
        elif any(mark in text for mark in _FAILURE_MARKS):
            self._last_errors = [*self._last_errors, text.strip()][-_LINES_KEPT:]
        self._say(_event_line(event) if event and self._console.is_terminal else text)
        if self._task is not None:
            detail = event.stack if event else finished or ""
            self._bar.update(self._task, completed=self.complete, total=self.total, detail=detail)

    def question(self, text: str) -> None:
        """Show a question of the CDK; the bar is hidden until the next event."""
        self._bar.stop()
        self._console.print(text, markup=False, highlight=False, soft_wrap=True, end="")

    def explanation(self, name_or_path: str) -> list[str]:
        """Return the failures and what to do, one line each.

        name_or_path: The blueprint, for commands.
        """
        lines = causes(self._failures) or self._last_errors
        advices = dict.fromkeys(each for line in lines if (each := advice(line, name_or_path)))
        return [*lines, *(f"what to do: {each}" for each in advices)]

    def _begin(self) -> None:
        """Start the bar at the first event, when the templates are written."""
        if not self._counts:
            self._counts = resource_counts(self._directory)
            self._task = self._bar.add_task("", total=self.total, detail="")
        self._bar.start()

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _event_line(event: ResourceEvent) -> str:
    """Return an event as a line without counter and time."""
    reason = f" {event.reason}" if event.reason else ""
    return f"{event.stack}  {event.status}  {event.resource_type}  {event.resource}{reason}"
