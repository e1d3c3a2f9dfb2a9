"""Open jobs: compares them with their executions, and deletes objects whose time has come."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from batch.completion.ending import TOO_LATE
from batch.jobs.executions import Execution, Executions
from batch.jobs.file_table import DeletionTable
from batch.jobs.job_table import Job, JobTable, plain
from batch.jobs.record_table import StateConflictError, Table
from batch.objects import Objects
from batch.scheduling.admissions import Admission, AdmissionTable
from inference_contracts.batch_limits import CLOSE_SECONDS, SCHEDULE_SECONDS
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE, OPEN, JobState


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that has not ended."""

    job: Job
    admission: Admission | None
    """Its current attempt; None if that has not asked for places yet."""

    @property
    def has_places(self) -> bool:
        """Whether its current attempt was admitted."""
        return self.admission is not None and self.admission.places is not None

    @property
    def is_refused(self) -> bool:
        """Whether it gets no places. Its execution is about to end it."""
        return self.job.state == "validating" and self.admission is not None and bool(self.admission.refusal)


def read_open_jobs(jobs: JobTable, admissions: AdmissionTable) -> Sequence[OpenJob]:
    """Return the open jobs of all teams, each once.

    The index has one list per state. A job that changes its state while the lists are read can be in two of
    them; the later one counts.
    """
    found = {job.id: job for state in OPEN for job in jobs.in_state(state)}
    return [OpenJob(job, admissions.of(job)) for job in found.values()]


# Deletes objects whose time has come, a bounded number in each run of the scheduler.


def sweep(deletions: DeletionTable, objects: Objects, *, now: float, has_time: Callable[[], bool]) -> None:
    """Delete the objects that are due. Every step can be repeated; the next run continues.

    has_time: Returns whether another thousand objects may be deleted.
    """
    for deletion in deletions.due(now):
        for prefix in deletion.prefixes:
            if not objects.delete_below(prefix, has_time=has_time):
                return
        deletions.forget(deletion)


#: States that a job leaves when its deadline passes.
_BEFORE_DEADLINE: Final[tuple[JobState, ...]] = ("validating", "in_progress")
# Longer than a submission takes to start its job, and than Step Functions takes to show a new execution.
_BEGUN_SECONDS: Final = 300
# Time for EventBridge to deliver the end of an execution.
_EVENT_SECONDS: Final = 120
# A job that nothing is known to be wrong with is compared once in so many runs. Step Functions allows 10
# DescribeExecution calls per second in its smaller regions
# (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
_RUNS_PER_COMPARISON: Final = 5


class Reconciler:
    """Ends jobs whose execution has ended, and starts jobs whose execution never began.

    table: Table of all records. It remembers for some time that a job is being closed.
    close: Called with an event of the type ``Step Functions Execution Status Change``.
    """

    def __init__(
        self,
        *,
        jobs: JobTable,
        table: Table,
        executions: Executions,
        close: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._jobs = jobs
        self._table = table
        self._executions = executions
        self._close = close

    def run(self, open_jobs: Iterable[OpenJob], *, now: float) -> None:
        """Compare the open jobs that are due. Every step can be repeated."""
        for job in _due(open_jobs, now):
            execution = self._executions.describe(job)
            if execution is None:
                self._begin_or_end(job, now)
            elif execution.is_running:
                if job.state == "cancelling" or _is_too_late(job, now):
                    self._executions.stop(job, cause=_cause(job))
            elif now - execution.ended_at >= _EVENT_SECONDS:
                self._close_once(job, execution, now)

    def _begin_or_end(self, job: Job, now: float) -> None:
        """Start a job whose submission was interrupted. End it if it was cancelled or is too late."""
        begun_at = max(job.created_at, *job.times.values()) if job.times else job.created_at
        if now - begun_at < _BEGUN_SECONDS:
            return
        with suppress(StateConflictError):  # It has just been changed. The next run compares it again.
            if job.state == "cancelling":
                self._jobs.move(job.id, "cancelled", before=["cancelling"], now=int(now), attempt=job.attempt)
            elif _is_too_late(job, now):
                self._jobs.move(
                    job.id,
                    "expired",
                    before=_BEFORE_DEADLINE,
                    now=int(now),
                    attempt=job.attempt,
                    changes={"errors": [plain(TOO_LATE)]},
                )
            else:
                self._executions.start(job)

    def _close_once(self, job: Job, execution: Execution, now: float) -> None:
        """Have the job closed, at most once in the time that closing may take."""
        slot = int(now // CLOSE_SECONDS)
        item = {
            ID_ATTRIBUTE: f"closing#{job.id}#{job.attempt}#{slot}",
            EXPIRY_ATTRIBUTE: int(now) + 2 * CLOSE_SECONDS,
        }
        if self._table.put_new(item, now=int(now)):
            self._close(execution.event())


def _due(open_jobs: Iterable[OpenJob], now: float) -> Iterator[Job]:
    """Iterate over the jobs to compare: at once those that must end, every other job within five runs."""
    turn = int(now // SCHEDULE_SECONDS) % _RUNS_PER_COMPARISON
    for each in open_jobs:
        job = each.job
        is_ending = job.state in ("cancelling", "finalizing") or _is_too_late(job, now)
        if is_ending or zlib.crc32(job.id.encode()) % _RUNS_PER_COMPARISON == turn:
            yield job


def _is_too_late(job: Job, now: float) -> bool:
    return job.state in _BEFORE_DEADLINE and job.expires_at <= now


def _cause(job: Job) -> str:
    return "cancelled" if job.state == "cancelling" else "the deadline has passed"
