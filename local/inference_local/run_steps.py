"""Shows the steps of a run: a progress bar in a terminal, otherwise one line per step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Step:
    """A running step.

    progress: The bar. None without a terminal.
    title: What the step does.
    say: Prints a line that stays.
    """

    def __init__(self, progress: Progress | None, title: str, say: Callable[[str], None]) -> None:
        self._progress = progress
        self._say = say
        self._task = progress.add_task(title, total=None, detail="") if progress else None
        self.result = ""

    def update(self, done: float | None = None, total: float | None = None, detail: str = "") -> None:
        """Show the progress of the step.

        done, total: Units done, and units in total. Without them the bar shows activity only.
        detail: The current action.
        """
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, detail=detail)

    def tell(self, line: str) -> None:
        """Show a line about an action that may take minutes, also without a terminal."""
        self.update(detail=line)
        if self._progress is None:
            self._say(f"  {line}")


class Steps:
    """Shows the steps of a run.

    console: Where they are shown.
    count: Number of steps.
    """

    def __init__(self, console: Console, count: int) -> None:
        self._console = console
        self._count = count
        self._number = 0

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show one step from start to end. Its last line contains `Step.result`.

        title: What the step does, in the imperative.
        """
        self._number += 1
        label = f"[{self._number}/{self._count}] {title}"
        started = time.monotonic()
        if self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[detail]}", markup=False),
            )
            with Progress(*columns, console=self._console, transient=True) as progress:
                step = Step(progress, label, self.say)
                yield step
        else:
            self.say(f"{label} ...")
            step = Step(None, label, self.say)
            yield step
        outcome = f": {step.result}" if step.result else ""
        self.say(f"{label}{outcome} ({time.monotonic() - started:.1f} s)")

    def say(self, text: str) -> None:
        """Print a line that stays. A terminal wraps it at words; elsewhere it is one line.

        text: The line.
        """
        is_one_line = not self._console.is_terminal
        self._console.print(text, markup=False, highlight=False, soft_wrap=is_one_line)
