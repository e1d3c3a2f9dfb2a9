"""Shows the steps of a run: in a terminal what is done, runs and follows; elsewhere plain lines."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

#: What the steps of a run do. A display names those that follow.
CONTROL_PLANE = "Build the Kubernetes control plane, once per machine"
TEMPLATES = "Write the CloudFormation templates"
EMULATOR = "Start the AWS emulator and bootstrap it"
STACKS = "Deploy all stacks to the emulator"
REPLAY = "Replay a public trace against the models"
PROMETHEUS = "Start Prometheus"
CLIENTS = "Let workers follow clients that come and go"
TWO_RAMPS = "Replay two ramps, the second beside a batch job"
SLOW_WORKER = "Slow a worker down until its node is replaced"
BATCH_BESIDE = "Wait for the batch job"
FRONT_DOOR = "Start the front door, with a key for each team"
CALLERS = "Let teams call through the front door, and kill a replica"
PAGES = "Send pages to a Java ad server"
CLICKS = "Replay clicks through the streaming job, and kill it in the middle"
BATCH_JOBS = "Run batch jobs while workers are killed"
KILLS = "Kill workers while they serve requests"

#: A rest is shown once this share of a step is done: before, it would jump.
_FORESEEABLE = 0.05
#: At most this many of the steps that follow are shown.
_FOLLOWING = 4
_MARK_WIDTH = 8
#: Room of a text in a terminal that is narrower than any text.
_LEAST_ROOM = 20


class Step:
    """A running step.

    title: What the step does.
    say: Prints a line that stays. None where a display shows the step.
    """

    def __init__(self, title: str, say: Callable[[str], None] | None) -> None:
        self.title = title
        self.result = ""
        self._say = say
        self._began = time.monotonic()
        self._done: float | None = None
        self._total: float | None = None
        self._detail = ""

    def update(self, done: float | None = None, total: float | None = None, detail: str = "") -> None:
        """Show the progress of the step.

        done, total: Units done, and units in total. Without them, only the time is shown.
        detail: The current action.
        """
        self._done, self._total, self._detail = done, total, detail

    def tell(self, line: str) -> None:
        """Show a line about an action that may take minutes, also without a terminal."""
        self.update(detail=line)
        if self._say is not None:
            self._say(f"  {line}")

    @property
    def seconds(self) -> float:
        """How long it runs."""
        return time.monotonic() - self._began

    @property
    def mark(self) -> str:
        """How much is done, in percent, if that is known."""
        return "[ ...]" if self._share is None else f"[{self._share:4.0%}]"

    @property
    def progress(self) -> str:
        """The current action, and how long the step still takes, or has taken."""
        share = self._share
        if share is None or share < _FORESEEABLE:
            return f"{self._detail}  {_minutes(self.seconds)}".strip()
        return f"{self._detail}  {_minutes(self.seconds * (1 - share) / share)} left".strip()

    @property
    def _share(self) -> float | None:
        return min(self._done / self._total, 1.0) if self._done is not None and self._total else None


class Steps:
    """Shows the steps of a run.

    console: Where they are shown. A terminal of continuous integration is treated as a file.
    titles: What the steps do, in their order.
    """

    def __init__(self, console: Console, titles: Sequence[str]) -> None:
        self._console = console
        self._titles = tuple(titles)
        self._number = 0
        #: Whether a display shows what runs and what follows.
        self.is_live = console.is_terminal and not console.is_dumb_terminal and not os.environ.get("CI")

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show one step from start to end. Its last line contains `Step.result`.

        title: What the step does, in the imperative.
        """
        self._number += 1
        if self.is_live:
            step = Step(title, None)
            with self._display(step):
                yield step
            self._say_done(step)
            return
        label = f"[{self._number}/{len(self._titles)}] {title}"
        self.say(f"{label} ...")
        step = Step(title, self.say)
        yield step
        outcome = f": {step.result}" if step.result else ""
        self.say(f"{label}{outcome} ({step.seconds:.1f} s)")

    def say(self, text: str) -> None:
        """Print a line that stays. A terminal wraps it at words; elsewhere it is one line.

        text: The line.
        """
        is_one_line = not self._console.is_terminal
        self._console.print(text, markup=False, highlight=False, soft_wrap=is_one_line)

    @contextmanager
    def _display(self, step: Step) -> Iterator[None]:
        following = self._titles[self._number :]
        with Live(
            get_renderable=lambda: self._lines(step, following),
            console=self._console,
            transient=True,
            refresh_per_second=4,
        ):
            yield

    def _lines(self, step: Step, following: Sequence[str]) -> Text:
        """Return the lines of a display, each cut to the width of the terminal."""
        rows = [f"{step.mark}  {step.title}", *([f"{'':{_MARK_WIDTH}}{step.progress}"])]
        rows += [f"[    ]  {title}" for title in following[:_FOLLOWING]]
        if len(following) > _FOLLOWING:
            rows.append(f"{'':{_MARK_WIDTH}}and {len(following) - _FOLLOWING} more")
        width = max(self._console.width - 1, _LEAST_ROOM)
        cut = (row if len(row) <= width else f"{row[: width - 1]}…" for row in rows)
        return Text("\n".join(cut))

    def _say_done(self, step: Step) -> None:
        """Print a line with the outcome, and its time at the right."""
        seconds = f"{step.seconds:.1f} s"
        text = f"{step.title}: {step.result}" if step.result else step.title
        room = max(self._console.width - 1 - _MARK_WIDTH, _LEAST_ROOM)
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        if len(lines[-1]) + 2 + len(seconds) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]:<{room - len(seconds)}}{seconds}"
        first, *further = lines
        for line in (f"[done]  {first}", *(f"{'':{_MARK_WIDTH}}{line}" for line in further)):
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def shown(path: Path) -> str:
    """Return a path for people: relative to the working directory if it is in it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
