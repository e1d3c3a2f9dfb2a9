"""Ends jobs: sets files, counts, usage, cost and final state, and reports the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from batch.completion.merging import Outcome, merge
from batch.completion.shard_results import Unrun
from batch.contracts.request import JobRequest
from batch.jobs import identifiers
from batch.jobs.file_table import DeletionTable, FileRecord, intermediate_objects
from batch.jobs.job_table import Job, JobError, RequestCounts, plain
from batch.jobs.record_table import StateConflictError
from batch.jobs.settings import RecordTables
from batch.jobs.spending import Figures, added, additions
from batch.objects import Objects
from batch.preparation.planning import Plan
from batch.publication.listing import count_published, list_unpublished, write_publications
from batch.scheduling.admissions import AdmissionTable
from inference_contracts.batch_configuration import Capacity
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import FINAL, JobState

# Errors shown in a batch. The error file has all of them.
_SHOWN_ERRORS = 100
#: States after which a job is never redriven.
_FOR_GOOD: Final[tuple[JobState, ...]] = ("completed", "cancelled")
#: Error of a job whose deadline passed.
TOO_LATE = JobError(
    "batch_expired", "the deadline passed before all requests were answered; redrive the job to run the rest"
)

#: Rows of lines that never ran, by the state in which their job ends.
_UNRUN: Final[Mapping[JobState, Unrun]] = {
    "cancelled": Unrun("batch_cancelled", "The batch was cancelled before this request was executed."),
    "expired": Unrun(
        "batch_expired", "This request could not be executed before the completion window expired."
    ),
    "failed": Unrun("not_run", "The job failed before this request was executed; redrive the job to run it."),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The way in which a job ends."""

    state: JobState
    """Final state."""
    before: tuple[JobState, ...]
    """States from which the job may enter the final state."""
    errors: tuple[JobError, ...] = ()
    """Reasons for a failure."""


class Ends:
    """Ends jobs.

    records: Tables of jobs and files.
    tell: Called with a job that has ended and the amounts added to its team's month. The amounts are None if
        an earlier call reported them, or if that call was interrupted before it could.
    """

    def __init__(
        self,
        records: RecordTables,
        objects: Objects,
        bucket: str,
        tell: Callable[[Job, Figures | None], None],
    ) -> None:
        self._records = records
        self._objects = objects
        self._bucket = bucket
        self._tell = tell

    def merge(
        self, identifier: str, attempt: int, *, now: int, has_time: Callable[[], bool] = lambda: True
    ) -> Outcome | None:
        """Join the results of a job's shards. The job is in state `finalizing` from then on.

        identifier, attempt: The job, and its attempt that has run.
        has_time: Returns whether another step of some seconds may begin.
        Returns: The result; None if time has ended. The next call continues.
        Raises StateConflictError if the job is no longer in that attempt.
        """
        job = self._job(identifier)
        if job.state != "finalizing":
            self._records.jobs.move(
                identifier, "finalizing", before=["in_progress"], now=now, attempt=attempt
            )
        # What did not run while the deadline was ahead, its shard has failed.
        return self._outcome(identifier, attempt, "expired" if now >= job.expires_at else "failed", has_time)

    def list_publications(self, identifier: str) -> int:
        """List the parts of a job whose answers must be published, and return their number."""
        if self._job(identifier).publication is None:
            return 0
        return write_publications(identifier, self._objects)

    def finish(self, identifier: str, *, now: int) -> Job:
        """End a job whose results are merged: completed, or failed or expired if lines are left."""
        outcome = Outcome.from_json(self._objects.read(JobKeys(identifier).outcome))
        if not outcome.undone:
            return self._end(identifier, self._done(identifier), outcome, now=now)
        if now >= self._job(identifier).expires_at:
            return self._end(identifier, Ending("expired", ("finalizing",), (TOO_LATE,)), outcome, now=now)
        message = (
            f"{len(outcome.undone):,} shards could not be completed; the output file has all answers so far; "
            "redrive the job to run the rest"
        )
        error = JobError("shards_failed", message)
        return self._end(identifier, Ending("failed", ("finalizing",), (error,)), outcome, now=now)

    def reject(self, identifier: str, *, now: int) -> Job:
        """End a job that its plan refuses, or that gets no places because it would miss its deadline."""
        plan = Plan.from_json(self._objects.read(JobKeys(identifier).plan))
        errors = tuple(JobError(each.code, each.message, each.line, each.param) for each in plan.problems)
        admission = AdmissionTable(self._records.table).of(self._job(identifier))
        if admission is not None and admission.refusal:
            errors += (JobError("misses_deadline", admission.refusal),)
        self._objects.join(self._objects.sizes(JobKeys(identifier).invalid), JobKeys(identifier).error)
        ending = Ending("failed", ("validating",), errors[:_SHOWN_ERRORS])
        return self._end(identifier, ending, None, now=now)

    def close(
        self,
        identifier: str,
        attempt: int,
        *,
        cause: str,
        now: int,
        has_time: Callable[[], bool] = lambda: True,
    ) -> Job | None:
        """End a job whose execution ended by itself: cancelled, timed out, or broken.

        identifier, attempt: The job, and its attempt that ended.
        cause: Reason that Step Functions gives.
        has_time: Returns whether another step of some seconds may begin.
        Returns: The job; None if it had already ended, another attempt is running, or its results are not
            joined yet. In the last case `Reconciler` has it closed again, and that call continues.
        """
        job = self._job(identifier)
        if job.attempt != attempt:
            return None
        if job.state in FINAL:
            self._tell(job, None)
            return None
        has_shards = JobKeys(identifier).shards in self._objects.sizes(JobKeys(identifier).shards)
        ending = _ending(job, cause, now)
        outcome = self._outcome(identifier, attempt, ending.state, has_time) if has_shards else None
        if has_shards and outcome is None:
            return None
        return self._end(identifier, ending, outcome, now=now)

    def _done(self, identifier: str) -> Ending:
        """Return the final state of a job whose requests are done.

        It succeeds if its answers were published as requested.
        """
        is_published = self._job(identifier).publication is None or not list_unpublished(
            identifier, self._objects
        )
        if is_published:
            return Ending("completed", ("finalizing",))
        message = (
            "the output file is complete, but some answers are missing from the signal store; redrive the "
            "job to publish the rest"
        )
        return Ending("failed", ("finalizing",), (JobError("signals_failed", message),))

    def _job(self, identifier: str) -> Job:
        job = self._records.jobs.get(identifier)
        if job is None:
            raise LookupError(f"{identifier}: there is no such job")
        return job

    def _outcome(
        self, identifier: str, attempt: int, state: JobState, has_time: Callable[[], bool]
    ) -> Outcome | None:
        """Merge the results of a job that ends in a state and store the result; None if time has ended."""
        outcome = merge(identifier, attempt, self._objects, unrun=_UNRUN[state], has_time=has_time)
        if outcome is not None:
            self._objects.write(JobKeys(identifier).outcome, outcome.to_json().encode())
        return outcome

    def _end(self, identifier: str, ending: Ending, outcome: Outcome | None, *, now: int) -> Job:
        """Write the end of a job once. A second call finds it ended."""
        job = self._job(identifier)
        counts, usage, usd = job.counts, job.usage, job.cost_usd
        if outcome is not None:
            counts = RequestCounts(self._total(job), outcome.completed, outcome.failed)
            usage = outcome.usage
            usd = self._capacity(job).usd(usage.input_tokens, usage.output_tokens)
        figures = added(job, counts, usage, usd)
        changes = {
            "errors": [plain(each) for each in ending.errors],
            "counts": plain(counts),
            "usage": plain(usage),
            "cost_usd": usd,
            **self._files(job, now=now),
        }
        if ending.state in _FOR_GOOD:
            DeletionTable(self._records.table).put(intermediate_objects(job.id, ended_at=now))
        if job.publication is not None:
            changes["published"] = plain(count_published(job.id, self._objects))
        try:
            ended = self._records.jobs.move(
                identifier,
                ending.state,
                before=ending.before,
                now=now,
                attempt=job.attempt,
                changes=changes,
                additions=additions(job, figures, now=now),
            )
        except StateConflictError:
            found = self._job(identifier)
            if found.state == ending.state and found.attempt == job.attempt:
                self._tell(found, None)
            return found
        self._tell(ended, figures)
        return ended

    def _total(self, job: Job) -> int:
        """Return the number of a job's requests: its lines that are not empty."""
        plan = Plan.from_json(self._objects.read(JobKeys(job.id).plan))
        return plan.requests

    def _capacity(self, job: Job) -> Capacity:
        """Return the prices of the job's queue at the time when the job was submitted."""
        return JobRequest.from_json(self._objects.read(JobKeys(job.id).request)).capacity

    def _files(self, job: Job, *, now: int) -> Mapping[str, str]:
        """Create the records of a job's files that are not empty, and return their identifiers.

        The record of a file from an earlier attempt gets its new size, even if that is 0.
        """
        keys = JobKeys(job.id)
        found: dict[str, str] = {}
        names: tuple[tuple[Literal["output", "error"], str], ...] = (
            ("output", keys.output),
            ("error", keys.error),
        )
        for name, key in names:
            size = self._objects.sizes(key).get(key, 0)
            identifier = identifiers.result_file(job.id, name)
            if size:
                found[f"{name}_file_id"] = identifier
            elif self._records.files.get(identifier, team=job.team, now=now) is None:
                continue
            record = FileRecord(
                id=identifier,
                team=job.team,
                filename=f"{job.id}_{name}.jsonl",
                purpose="batch_output",
                size=size,
                bucket=self._bucket,
                key=key,
                created_at=now,
                expires_at=None if job.output_seconds is None else now + job.output_seconds,
            )
            self._records.files.replace(record)
        return found


def _ending(job: Job, cause: str, now: int) -> Ending:
    """Return the final state of a job whose execution ended by itself."""
    if job.state == "cancelling":
        return Ending("cancelled", ("cancelling",))
    before: tuple[JobState, ...] = ("validating", "in_progress", "finalizing")
    if now >= job.expires_at:
        return Ending("expired", before, (TOO_LATE,))
    message = f"the job was interrupted: {cause}; redrive it to run the rest"
    return Ending("failed", before, (JobError("internal_error", message),))
