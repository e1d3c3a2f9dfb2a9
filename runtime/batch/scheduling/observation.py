"""Counts waiting and running jobs of each queue, and measures the longest wait against its deadline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from batch.embedded_metrics import emit
from batch.jobs.job_table import Job
from batch.scheduling.reconciling import OpenJob
from inference_contracts import batch_names


@dataclass(slots=True)
class Backlog:
    """The open jobs of one queue."""

    waiting: int = 0
    """Jobs that are being checked or wait for places."""
    running: int = 0
    """Jobs with places."""
    ending: int = 0
    """Jobs that are about to end."""
    oldest_seconds: float = 0.0
    """Longest waiting time, in seconds."""
    waited_percent: float = 0.0
    """Largest share of a job's time that it spent waiting."""

    def add_waiting(self, job: Job, now: float) -> None:
        """Count a waiting job."""
        # A further attempt waits since it was requested, with as much time as the first.
        since = job.created_at if job.attempt == 1 else job.times["in_progress_at"]
        waited = max(now - since, 0.0)
        self.waiting += 1
        self.oldest_seconds = max(self.oldest_seconds, waited)
        self.waited_percent = max(self.waited_percent, 100 * waited / max(job.expires_at - since, 1))


def observe(open_jobs: Iterable[OpenJob], queues: Iterable[str], *, now: float) -> dict[str, Backlog]:
    """Count the open jobs of each queue, including queues without jobs.

    queues: Names of the platform's queues.
    """
    found = {queue: Backlog() for queue in queues}
    for each in open_jobs:
        backlog = found.setdefault(each.job.queue, Backlog())
        if each.job.state in ("finalizing", "cancelling"):
            backlog.ending += 1
        elif each.job.state == "in_progress" and each.has_places:
            backlog.running += 1
        else:
            backlog.add_waiting(each.job, now)
    return found


def report(backlogs: dict[str, Backlog], platform: str) -> None:
    """Write metrics of the queues, and the metric that the scheduler has run.

    backlogs: The open jobs by queue.
    """
    for queue, backlog in backlogs.items():
        figures = {_METRICS[name]: value for name, value in asdict(backlog).items()}
        emit(figures, {batch_names.PLATFORM_DIMENSION: platform, batch_names.QUEUE_DIMENSION: queue})
    emit({batch_names.SCHEDULER_RUNS: 1}, {batch_names.PLATFORM_DIMENSION: platform})


_METRICS = {
    "waiting": batch_names.JOBS_WAITING,
    "running": batch_names.JOBS_RUNNING,
    "ending": batch_names.JOBS_ENDING,
    "oldest_seconds": batch_names.OLDEST_WAITING_SECONDS,
    "waited_percent": batch_names.WAITED_PERCENT,
}
