"""Counts the outcomes of a job's requests by custom_id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference_local.signal_store import SignalCounts


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of one job."""

    queue: str
    model: str
    """The model that answered it."""
    team: str
    """The team that submitted it."""
    state: str
    """Its final state."""
    requests: int
    completed: int
    """Requests with an answer."""
    failed: int
    """Requests that ended with an error."""
    lost: int
    """Requests without a row in either file."""
    duplicated: int
    """Rows after the first of the same request."""
    cost_usd: float
    """Its cost in US dollars, by the queue's rates."""
    seconds: float
    """From its submission to its end."""
    workers_killed: int
    """Workers that were killed and replaced while it ran."""
    signals: SignalCounts | None = None
    """Outcomes of its answers in the signal store. None if its team has no signal."""
    images: int | None = None
    """Images that its output names. None if its answers are text."""

    @property
    def is_whole(self) -> bool:
        """Whether every request was answered exactly once, and every answer is in the signal store."""
        answered_once = self.completed == self.requests and not (self.failed or self.lost or self.duplicated)
        return answered_once and (self.signals is None or self.signals.is_whole)


@dataclass(frozen=True, slots=True)
class Counts:
    """Request counts of a job, with the fields of `BatchOutcome`."""

    requests: int
    completed: int
    failed: int
    lost: int
    duplicated: int


def count(custom_ids: Sequence[str], output: str, errors: str) -> Counts:
    """Count the outcomes of the requests.

    custom_ids: The submitted custom_ids, each once.
    output, errors: The job's files in JSON Lines. Empty if the job has none.
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


def named_images(output: str) -> list[str]:
    """Return the identifiers of the images that a job's output names."""
    rows = [json.loads(row) for row in output.split("\n") if row]
    return [image["file_id"] for row in rows for image in row["response"]["body"]["data"]]


def _custom_ids(rows: str) -> list[Any]:
    return [json.loads(row)["custom_id"] for row in rows.split("\n") if row]
