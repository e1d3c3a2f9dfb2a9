"""Summary of a queue's day."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchDaySummary:
    """A day of one queue, computed from its declared load.

    Parameters
    ----------
    queue, model
        The queue, and the model of its jobs.
    requests_per_second
        Mean over the day.
    jobs, segments, shards
        Numbers per day; shards at most.
    in_flight
        Most requests in flight over all workers of the model.
    seconds_per_request
        Longest mean duration of a request with which those workers finish a day's requests in a day.
    """

    queue: str
    model: str
    requests_per_second: float
    jobs: int
    segments: int
    shards: int
    in_flight: int
    seconds_per_request: float
