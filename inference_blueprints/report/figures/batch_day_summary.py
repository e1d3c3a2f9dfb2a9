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
        Most requests in flight: what the model's engines run at once, or what the batch workers send at once
        if
        that is less.
    seconds_per_request
        Longest mean duration of a request with which a day's requests are finished in a day.
    requests_per_job
        Mean requests of a job.
    deadline_hours
        Maximum hours of a job.
    full_requests_per_second
        Requests per second that the model completes at its highest load (simulated); None without a latency
        profile.
    load_requests_per_second
        Mean requests per second of all queues of the model.
    """

    queue: str
    model: str
    requests_per_second: float
    jobs: int
    segments: int
    shards: int
    in_flight: int
    seconds_per_request: float
    requests_per_job: int
    deadline_hours: float
    full_requests_per_second: float | None
    load_requests_per_second: float

    @property
    def job_hours(self) -> float | None:
        """Hours of a job if the model answers nothing else; None if the model's speed is unknown."""
        if self.full_requests_per_second is None:
            return None
        return self.requests_per_job / self.full_requests_per_second / 3600

    @property
    def deadline_can_hold(self) -> bool | None:
        """Whether a job can end before its deadline; None if the model's speed is unknown."""
        return None if self.job_hours is None else self.job_hours <= self.deadline_hours

    @property
    def keeps_up(self) -> bool | None:
        """Whether the model completes as many requests as its queues get; None if its speed is unknown."""
        full = self.full_requests_per_second
        return None if full is None else self.load_requests_per_second <= full
