"""Counts the outcomes of a job's requests by custom_id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference_local.signals.read_back import SignalCounts


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of one job.

    Parameters
    ----------
    queue, model, team
        Its queue, the model that answered it, and the team that submitted it.
    state
        Its final state.
    completed, failed
        Requests with an answer, and requests that ended with an error.
    lost, duplicated
        Requests without a row in either file, and rows after the first of the same request.
    cost_usd
        Its cost in US dollars, by the queue's rates.
    seconds
        From its submission to its end.
    workers_killed
        Workers that were killed and replaced while it ran.
    signals
        Outcomes of its answers in the signal store. None if its team has no signal.
    images
        Images that its output names. None if its answers are text.
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
    images: int | None = None

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

    Parameters
    ----------
    custom_ids
        The submitted custom_ids, each once.
    output, errors
        The job's files in JSON Lines. Empty if the job has none.
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
