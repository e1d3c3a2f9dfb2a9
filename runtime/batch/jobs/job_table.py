"""Jobs in the table: created once, moved from state to state by one writer at a time, listed by team."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self

from batch.contracts.progress_items import Published
from batch.contracts.request import Input, Publication
from batch.contracts.shard import Usage
from batch.jobs import identifiers
from batch.jobs.record_table import Additions, Table, UnknownCursorError
from inference_contracts.batch_names import (
    EXPIRY_ATTRIBUTE,
    FINAL,
    ID_ATTRIBUTE,
    ORDER_ATTRIBUTE,
    STATE_INDEX_KEY,
    TEAM_INDEX_KEY,
    JobState,
    can_follow,
)
from inference_contracts.json_record import JsonRecord

# The record of a job: request, state and result.

#: The ways to submit a job.
Source = Literal["api", "object", "schedule"]

#: The timestamp field of each state, with the names of the OpenAI API.
TIMES: Final[Mapping[JobState, str]] = {
    "in_progress": "in_progress_at",
    "finalizing": "finalizing_at",
    "completed": "completed_at",
    "failed": "failed_at",
    "expired": "expired_at",
    "cancelling": "cancelling_at",
    "cancelled": "cancelled_at",
}


@dataclass(frozen=True, slots=True)
class RequestCounts(JsonRecord):
    """Counts of a job's requests."""

    total: int = 0
    completed: int = 0
    failed: int = 0
    """`total`, `completed`, `failed`: All requests, those with an answer, and those that ended with an
    error."""


@dataclass(frozen=True, slots=True)
class JobError(JsonRecord):
    """Reason for a job's failure, in the format of the OpenAI API."""

    code: str
    """Stable error code for programs."""
    message: str
    """The received value, the allowed values, and the action to take."""
    line: int | None = None
    """Line of the input, from 1, if the error concerns one line."""
    param: str | None = None
    """Field of the request, if the error concerns one field."""


@dataclass(frozen=True, slots=True)
class Job(JsonRecord):
    """A job. Times are whole seconds since 1970."""

    id: str
    team: str
    queue: str
    model: str
    endpoint: str
    """`id`, `team`, `queue`, `model`, `endpoint`: The job's identifier, its team, queue and model, and the
    API path of every line."""
    inputs: tuple[Input, ...]
    """Inputs, in order."""
    source: Source
    principal: str
    """`source`, `principal`: Way of submission, and ARN of the sender. The sender of an object in S3 is
    unknown."""
    created_at: int
    """Time of submission."""
    expires_at: int
    """Deadline."""
    completion_window: str
    """The deadline as it was requested, such as ``24h``."""
    priority: int
    budget_usd: float
    """Cost limit, in dollars."""
    state: JobState = "validating"
    attempt: int = 1
    """Number of attempts: 1, plus one for each redrive."""
    times: Mapping[str, int] = field(default_factory=dict)
    """Time of entering each state, by the names of `TIMES`."""
    counts: RequestCounts = field(default_factory=RequestCounts)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    """`counts`, `usage`, `cost_usd`: Counts of requests, tokens, and cost in dollars."""
    input_file_id: str = ""
    output_file_id: str | None = None
    error_file_id: str | None = None
    """`input_file_id`, `output_file_id`, `error_file_id`: Files of the job. A job submitted as an object has
    no input file."""
    errors: tuple[JobError, ...] = ()
    publication: Publication | None = None
    """Destination of its answers in the signal store."""
    published: Published = field(default_factory=Published)
    """The counts of published ones."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The team's own notes."""
    output_seconds: int | None = None
    """Lifetime of its output and error file in seconds, from their creation; None if they are kept."""
    accept_late: bool = False
    """Whether it runs although it is expected to miss its deadline."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Read a record. A redrive sets the times of later states to null; these are dropped."""
        times = {name: at for name, at in values["times"].items() if at is not None}
        # `super()` without arguments fails in a data class with slots, because `slots=True` replaces the
        # class.
        return super(Job, cls).from_values({**values, "times": times})


#: Lifetime of an idempotency key. It is longer than the time in which any event is delivered again.
_REMEMBERED_SECONDS: Final = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Once:
    """Idempotency key of a submission."""

    key: str
    """Key of the submission, unique within the team."""
    fingerprint: str
    """Digest of the submission. The same key with another digest is an error."""
    seconds: int = _REMEMBERED_SECONDS
    """Lifetime of the key."""
    overwrites: bool = False
    """Whether the key replaces an earlier submission with the same key, instead of returning its job."""


class KeyReusedError(Exception):
    """An idempotency key was used before for another submission."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of a team's list of jobs."""

    jobs: tuple[Job, ...]
    has_more: bool
    """Whether more pages follow."""


class JobTable:
    def __init__(self, table: Table) -> None:
        self._table = table

    def create(self, job: Job, once: Once | None) -> Job:
        """Create a job, or return the job of an equal submission.

        The key is written before the job, together with the job's future identifier. A caller that finds the
        key without a job creates it. So the next call completes an interrupted submission.

        once: Idempotency key; None if each submission is a new job.
        Raises KeyReusedError if the key was used before for another submission.
        """
        identifier = job.id if once is None else self._identifier(job, once)
        values = {**job.to_values(), "id": identifier}
        item = {
            ID_ATTRIBUTE: identifier,
            "record": values,
            TEAM_INDEX_KEY: _collection(job.team),
            ORDER_ATTRIBUTE: f"{time.time_ns():019d}#{identifier}",
            STATE_INDEX_KEY: job.state,
        }
        if job.state in FINAL:
            del item[STATE_INDEX_KEY]
        if self._table.put_new(item, now=job.created_at):
            return Job.from_values(values)
        return self._existing(identifier)

    def _identifier(self, job: Job, once: Once) -> str:
        """Return the identifier stored with a key: that of this job, or that of an earlier one."""
        key = f"once#{identifiers.digest(job.team, once.key)}"
        item = {
            ID_ATTRIBUTE: key,
            "record": {"job": job.id, "fingerprint": once.fingerprint},
            EXPIRY_ATTRIBUTE: job.created_at + once.seconds,
        }
        if once.overwrites:
            self._table.put(item)
            return job.id
        if self._table.put_new(item, now=job.created_at):
            return job.id
        found = self._table.get(key)
        if found is None:  # The key expired and was deleted between the two reads.
            return self._identifier(job, once)
        if found["fingerprint"] != once.fingerprint:
            raise KeyReusedError(once.key)
        return str(found["job"])

    def _existing(self, identifier: str) -> Job:
        values = self._table.get(identifier)
        if values is None:
            raise LookupError(f"{identifier}: has disappeared from the table")
        return Job.from_values(values)

    def get(self, identifier: str) -> Job | None:
        """Return a job of any team; None if it does not exist."""
        if not identifiers.is_job(identifier):
            return None
        values = self._table.get(identifier)
        return None if values is None else Job.from_values(values)

    def of_team(self, team: str, *, after: str | None, limit: int) -> JobPage:
        """Return one page of a team's jobs, newest first.

        after: Identifier of the job before the first one; None for the start of the list.
        Raises UnknownCursorError if the team has no such job.
        """
        if after is not None and not identifiers.is_job(after):
            raise UnknownCursorError(after)
        page = self._table.page(_collection(team), after=after, limit=limit)
        return JobPage(tuple(map(Job.from_values, page.records)), page.has_more)

    def in_state(self, state: JobState) -> Iterator[Job]:
        """Iterate over the jobs in a state that is not final, oldest first.

        The index lags behind the table. `move` detects a job that has left the state.
        """
        return map(Job.from_values, self._table.in_state(state))

    def move(
        self,
        identifier: str,
        after: JobState,
        *,
        before: Collection[JobState],
        now: int,
        attempt: int | None = None,
        changes: Mapping[str, Any] | None = None,
        additions: Additions | None = None,
    ) -> Job:
        """Move a job into a state and return it. Of two concurrent calls, one is refused.

        before: Allowed current states.
        now: Seconds since 1970, recorded as the time of entering the state.
        attempt: Attempt that the call belongs to, so that a replaced attempt changes nothing; None if any
            may.
        changes: New plain values of other fields.
        additions: Amounts added to sums in the same transaction.
        Raises StateConflictError if the job is in another state or another attempt. Raises ValueError if no
            job may take this transition.
        """
        wrong = [state for state in before if not can_follow(state, after)]
        if wrong:
            raise ValueError(f"{after} cannot follow {', '.join(wrong)}")
        expected: dict[str, Collection[Any]] = {"state": before}
        if attempt is not None:
            expected["attempt"] = [attempt]
        values = self._table.change(
            identifier,
            {"state": after, f"times.{TIMES[after]}": now, **(changes or {})},
            expected=expected,
            open_state=None if after in FINAL else after,
            additions=additions,
        )
        return Job.from_values(values)

    def note(self, job: Job, changes: Mapping[str, Any]) -> Job:
        """Change fields of a job without changing its state, such as its counts, and return the job.

        job: The job as the writer knows it.
        changes: New plain values by field.
        Raises StateConflictError if the job is in another state or another attempt by now.
        """
        values = self._table.change(
            job.id,
            changes,
            expected={"state": [job.state], "attempt": [job.attempt]},
            open_state=None if job.state in FINAL else job.state,
        )
        return Job.from_values(values)


def plain(value: Any) -> Any:
    """Convert a part of a record to the plain values that `JobTable.move` and `note` take.

    value: A data class of `batch.jobs.job_table` or `batch.contracts`.
    """
    return asdict(value)


def _collection(team: str) -> str:
    """Return the index key of a team's list of jobs."""
    return f"{team}#job"
