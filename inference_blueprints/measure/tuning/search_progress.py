"""How far a search is, on standard error: a bar in a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from inference_blueprints.measure.tuning.candidates import TuningCandidate, WorkerShape


@dataclass(slots=True)
class ShownProgress:
    """A bar over the kinds of configuration."""

    bar: Progress
    """The bar; hidden if standard error is not a terminal."""
    task: TaskID
    """The only line of the bar."""

    def say(self, line: str) -> None:
        """Show a line that stays."""
        self.bar.console.print(line, markup=False, highlight=False)

    def shapes(self, total: int) -> None:
        """Set the number of shapes to search."""
        self.bar.update(self.task, total=total)

    def replaying(self, candidate: TuningCandidate) -> None:
        """Show the configuration that is being replayed."""
        workers = " + ".join(
            f"{count}x{role.tensor_parallel_size} {role.pool}"
            for count, role in zip(candidate.replicas, candidate.shape.roles, strict=True)
        )
        self.bar.update(self.task, description=f"replaying {workers} ({candidate.shape.engine})")

    def looked_at(self, shape: WorkerShape) -> None:  # noqa: ARG002 - the search says which
        """Count a shape as searched."""
        self.bar.advance(self.task)


@contextmanager
def shown_progress() -> Iterator[ShownProgress]:
    """Show progress while the block runs.

    Yields: Receiver of the progress.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield ShownProgress(bar, bar.add_task("reading", total=None))
