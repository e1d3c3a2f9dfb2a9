"""Compares open jobs with their executions, and ends each job whose execution has ended.

Step Functions reports the end of an execution to EventBridge "on a best-effort basis"
(https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html), and a function may be
interrupted between two calls. So no job relies on an event: the scheduler looks at the executions themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from batch.completion.ending import TOO_LATE
from batch.jobs.executions import Execution, Executions
from batch.jobs.job_record import Job
from batch.jobs.job_table import JobTable, plain
from batch.jobs.record_table import StateConflictError, Table
from batch.scheduling.open_jobs import OpenJob
from inference_contracts.batch_limits import CLOSE_SECONDS, SCHEDULE_SECONDS
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE
from inference_contracts.batch_states import JobState

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
