"""Batch in figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchDaySummary:
    """A day of one queue, as it is declared.

    Parameters
    ----------
    queue, model
        Where its jobs wait, and who answers them.
    requests_per_second
        Mean over the day.
    jobs, segments, shards
        Of a day; shards at the most.
    in_flight
        Requests that the model's workers hold at once, at the most.
    seconds_per_request
        How long a request may take for those workers to do the model's day in a day.
    """

    queue: str
    model: str
    requests_per_second: float
    jobs: int
    segments: int
    shards: int
    in_flight: int
    seconds_per_request: float
