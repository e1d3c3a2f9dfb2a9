"""How many jobs of each queue wait and run, and how near the one that waited longest is to its deadline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from batch.contracts.states import JobState
from batch.embedded_metrics import emit
from batch.jobs.job import Job
from batch.jobs.job_table import JobTable
from batch.scheduling.admissions import AdmissionTable

_OPEN: tuple[JobState, ...] = ("validating", "in_progress", "finalizing", "cancelling")


@dataclass(slots=True)
class Backlog:
    """The open jobs of one queue.

    Parameters
    ----------
    waiting, running, ending
        Jobs that are checked or wait for places, that have places, and whose end is being made.
    oldest_seconds
        For how long the job has waited that has waited longest.
    waited_percent
        The largest part of its time that a job has waited away.
    """

    waiting: int = 0
    running: int = 0
    ending: int = 0
    oldest_seconds: float = 0.0
    waited_percent: float = 0.0

    def add_waiting(self, job: Job, now: float) -> None:
        """Count a job that waits.

        Parameters
        ----------
        job
            The job.
        now
            Seconds since 1970.
        """
        # A further attempt waits since it was asked for, with the time of the first.
        since = job.created_at if job.attempt == 1 else job.times["in_progress_at"]
        waited = max(now - since, 0.0)
        self.waiting += 1
        self.oldest_seconds = max(self.oldest_seconds, waited)
        self.waited_percent = max(self.waited_percent, 100 * waited / max(job.expires_at - since, 1))


def observe(
    jobs: JobTable, admissions: AdmissionTable, queues: Iterable[str], *, now: float
) -> dict[str, Backlog]:
    """Return the open jobs of each queue; queues without any are there too.

    Parameters
    ----------
    jobs, admissions
        The records.
    queues
        Names of the platform's queues.
    now
        Seconds since 1970.
    """
    found = {queue: Backlog() for queue in queues}
    for state in _OPEN:
        for job in jobs.in_state(state):
            backlog = found.setdefault(job.queue, Backlog())
            if state in ("finalizing", "cancelling"):
                backlog.ending += 1
            elif _has_places(job, admissions):
                backlog.running += 1
            else:
                backlog.add_waiting(job, now)
    return found


def report(backlogs: dict[str, Backlog], platform: str) -> None:
    """Write metrics of what was observed, and that the scheduler has run.

    Parameters
    ----------
    backlogs
        The open jobs by queue.
    platform
        The platform's name.
    """
    for queue, backlog in backlogs.items():
        figures = {_METRICS[name]: value for name, value in asdict(backlog).items()}
        emit(figures, {"Platform": platform, "Queue": queue})
    emit({"SchedulerRuns": 1}, {"Platform": platform})


_METRICS = {
    "waiting": "JobsWaiting",
    "running": "JobsRunning",
    "ending": "JobsEnding",
    "oldest_seconds": "OldestWaitingSeconds",
    "waited_percent": "WaitedPercent",
}


def _has_places(job: Job, admissions: AdmissionTable) -> bool:
    """Return whether a job was let in."""
    if job.state != "in_progress":
        return False
    admission = admissions.of(job)
    return admission is not None and admission.places is not None
