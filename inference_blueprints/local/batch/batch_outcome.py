"""What became of a job's lines, counted by their custom_id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference_blueprints.local.signals.read_back import SignalCounts


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of one job.

    Parameters
    ----------
    queue, model, team
        Where it waited, who answered it, and whose it was.
    state
        The state that it ended in.
    completed, failed
        Lines with an answer, and those that ended as an error.
    lost, duplicated
        Lines without a row in either file, and rows beyond the first of their line.
    cost_usd
        What the platform charges for it, in dollars, by the queue's rates.
    seconds
        From its submission to its end.
    workers_killed
        Workers that were killed and replaced while it ran.
    signals
        What became of its answers in the signal store; None where its team has no signal.
    """

    queue: str
    model: str
    team: str
    state: str
    requests: int
    completed: int
    failed: int
    lost: int
    duplicated: int
    cost_usd: float
    seconds: float
    workers_killed: int
    signals: SignalCounts | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every line was answered once, and every answer is a signal where it should be."""
        answered_once = self.completed == self.requests and not (self.failed or self.lost or self.duplicated)
        return answered_once and (self.signals is None or self.signals.is_whole)


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines of a job; the fields are those of `BatchOutcome`."""

    requests: int
    completed: int
    failed: int
    lost: int
    duplicated: int


def count(custom_ids: Sequence[str], output: str, errors: str) -> Counts:
    """Count what became of each line.

    Parameters
    ----------
    custom_ids
        Of the lines that were submitted, each once.
    output, errors
        The job's files, JSON Lines; empty where it has none.
    """
    answered, failed = Counter(_custom_ids(output)), Counter(_custom_ids(errors))
    rows = answered + failed
    return Counts(
        requests=len(custom_ids),
        completed=len(answered.keys() & set(custom_ids)),
        failed=len(failed.keys() & set(custom_ids)),
        lost=len(set(custom_ids) - rows.keys()),
        duplicated=rows.total() - len(rows.keys() & set(custom_ids)),
    )


def _custom_ids(rows: str) -> list[Any]:
    return [json.loads(row)["custom_id"] for row in rows.split("\n") if row]
