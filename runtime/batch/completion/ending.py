"""Ends jobs: their files, counts, usage and cost, the state that they end in, and who is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from batch.completion.merging import Outcome, merge
from batch.contracts.keys import JobKeys
from batch.contracts.request import Capacity, JobRequest
from batch.contracts.states import FINAL, JobState
from batch.jobs import identifiers
from batch.jobs.files import FileRecord
from batch.jobs.job import Job, JobError, RequestCounts
from batch.jobs.job_table import plain
from batch.jobs.settings import Records
from batch.jobs.spending import Figures, added, additions
from batch.jobs.table import StateConflictError
from batch.objects import Objects
from batch.preparation.planning import Plan
from batch.publication.listing import published, unpublished, write_publications

# Of a batch's errors; the error file has them all.
_SHOWN_ERRORS = 100
_TOO_LATE = JobError(
    "batch_expired", "the deadline passed before all requests were answered; redrive the job to run the rest"
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends.

    Parameters
    ----------
    state
        The state that it ends in.
    before
        States that it may be in until then.
    errors
        Why it did not end well.
    """

    state: JobState
    before: tuple[JobState, ...]
    errors: tuple[JobError, ...] = ()


class Ends:
    """Ends jobs.

    Parameters
    ----------
    records
        Of jobs and files.
    objects
        The batch bucket.
    bucket
        Its name.
    tell
        Takes a job that has ended, and what it added to its team's month; None where that was told before, or
        whoever ended it was stopped before it told.
    """

    def __init__(
        self, records: Records, objects: Objects, bucket: str, tell: Callable[[Job, Figures | None], None]
    ) -> None:
        self._records = records
        self._objects = objects
        self._bucket = bucket
        self._tell = tell

    def merge(self, identifier: str, attempt: int, *, now: int) -> Outcome:
        """Join what the shards of a job left; the job is finalizing from then on.

        Parameters
        ----------
        identifier, attempt
            The job, and the attempt at it that has run.
        now
            Seconds since 1970.

        Raises
        ------
        StateConflictError
            If the job is not that attempt's any more.
        """
        job = self._job(identifier)
        if job.state != "finalizing":
            self._records.jobs.move(
                identifier, "finalizing", before=["in_progress"], now=now, attempt=attempt
            )
        return self._outcome(identifier)

    def list_publications(self, identifier: str) -> int:
        """List the parts of a job whose answers are to be published, and return how many they are.

        Parameters
        ----------
        identifier
            The job.
        """
        if self._job(identifier).publication is None:
            return 0
        return write_publications(identifier, self._objects)

    def finish(self, identifier: str, *, now: int) -> Job:
        """End a job whose results are merged: completed, or failed or expired where lines are left.

        Parameters
        ----------
        identifier
            The job.
        now
            Seconds since 1970.
        """
        outcome = Outcome.from_json(self._objects.read(JobKeys(identifier).outcome))
        if not outcome.undone:
            return self._end(identifier, self._done(identifier), outcome, now=now)
        if now >= self._job(identifier).expires_at:
            return self._end(identifier, Ending("expired", ("finalizing",), (_TOO_LATE,)), outcome, now=now)
        message = (
            f"{len(outcome.undone):,} shards could not be done; the output file has what is answered: "
            "redrive the job to run the rest"
        )
        error = JobError("shards_failed", message)
        return self._end(identifier, Ending("failed", ("finalizing",), (error,)), outcome, now=now)

    def reject(self, identifier: str, *, now: int) -> Job:
        """End a job that will not run, by its plan.

        Parameters
        ----------
        identifier
            The job.
        now
            Seconds since 1970.
        """
        plan = Plan.from_json(self._objects.read(JobKeys(identifier).plan))
        errors = tuple(JobError(each.code, each.message, each.line) for each in plan.problems)
        self._objects.join(self._objects.sizes(JobKeys(identifier).invalid), JobKeys(identifier).error)
        ending = Ending("failed", ("validating",), errors[:_SHOWN_ERRORS])
        return self._end(identifier, ending, None, now=now)

    def close(self, identifier: str, attempt: int, *, cause: str, now: int) -> Job | None:
        """End a job whose execution ended by itself: cancelled, out of time, or broken.

        Parameters
        ----------
        identifier, attempt
            The job, and the attempt at it that ended.
        cause
            Why, in the words of Step Functions.
        now
            Seconds since 1970.

        Returns
        -------
        Job or None
            The job; None if it had ended, or another attempt is under way.
        """
        job = self._job(identifier)
        if job.attempt != attempt:
            return None
        if job.state in FINAL:
            self._tell(job, None)
            return None
        has_shards = JobKeys(identifier).shards in self._objects.sizes(JobKeys(identifier).shards)
        outcome = self._outcome(identifier) if has_shards else None
        return self._end(identifier, _ending(job, cause, now), outcome, now=now)

    def _done(self, identifier: str) -> Ending:
        """Return how a job ends whose requests are done: well, if its answers are where they were to go."""
        is_published = self._job(identifier).publication is None or not unpublished(identifier, self._objects)
        if is_published:
            return Ending("completed", ("finalizing",))
        message = (
            "the output file is whole, but not all of its answers are in the signal store: redrive the job "
            "to publish the rest"
        )
        return Ending("failed", ("finalizing",), (JobError("signals_failed", message),))

    def _job(self, identifier: str) -> Job:
        """Return a job."""
        job = self._records.jobs.get(identifier)
        if job is None:
            raise LookupError(f"{identifier}: there is no such job")
        return job

    def _outcome(self, identifier: str) -> Outcome:
        """Merge a job's results and keep what became of it."""
        outcome = merge(identifier, self._objects)
        self._objects.write(JobKeys(identifier).outcome, outcome.to_json().encode())
        return outcome

    def _end(self, identifier: str, ending: Ending, outcome: Outcome | None, *, now: int) -> Job:
        """Write how a job ended, once; who comes second finds it so."""
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
        if job.publication is not None:
            changes["published"] = plain(published(job.id, self._objects))
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
        """Return the requests of a job: its lines that hold something."""
        plan = Plan.from_json(self._objects.read(JobKeys(job.id).plan))
        return plan.requests

    def _capacity(self, job: Job) -> Capacity:
        """Return what the job's queue costs, as it was when the job was submitted."""
        return JobRequest.from_json(self._objects.read(JobKeys(job.id).request)).capacity

    def _files(self, job: Job, *, now: int) -> Mapping[str, str]:
        """Make the records of those files of a job that hold something, and return their identifiers.

        One that an earlier attempt left has its new size, if only to say that it holds nothing any more.
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
            )
            self._records.files.replace(record)
        return found


def _ending(job: Job, cause: str, now: int) -> Ending:
    """Return how a job ends whose execution ended by itself."""
    if job.state == "cancelling":
        return Ending("cancelled", ("cancelling",))
    before: tuple[JobState, ...] = ("validating", "in_progress", "finalizing")
    if now >= job.expires_at:
        return Ending("expired", before, (_TOO_LATE,))
    message = f"the job broke off: {cause}; redrive it to run what is not done"
    return Ending("failed", before, (JobError("internal_error", message),))
