"""The record of a job: request, state and result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from batch.contracts.publication import Published
from batch.contracts.request import Input, Publication
from batch.contracts.shard import Usage
from inference_contracts.batch_states import JobState
from inference_contracts.json_record import JsonRecord

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
    """Counts of a job's requests.

    Parameters
    ----------
    total, completed, failed
        All requests, those with an answer, and those that ended with an error.
    """

    total: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class JobError(JsonRecord):
    """Reason for a job's failure, in the format of the OpenAI API.

    Parameters
    ----------
    code
        Stable error code for programs.
    message
        The received value, the allowed values, and the action to take.
    line
        Line of the input, from 1, if the error concerns one line.
    param
        Field of the request, if the error concerns one field.
    """

    code: str
    message: str
    line: int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Job(JsonRecord):
    """A job. Times are whole seconds since 1970.

    Parameters
    ----------
    id, team, queue, model, endpoint
        The job's identifier, its team, queue and model, and the API path of every line.
    inputs
        Inputs, in order.
    source, principal
        Way of submission, and ARN of the sender. The sender of an object in S3 is unknown.
    created_at, expires_at
        Time of submission, and deadline.
    completion_window
        The deadline as it was requested, such as ``24h``.
    budget_usd
        Cost limit, in dollars.
    attempt
        Number of attempts: 1, plus one for each redrive.
    times
        Time of entering each state, by the names of `TIMES`.
    counts, usage, cost_usd
        Counts of requests, tokens, and cost in dollars.
    input_file_id, output_file_id, error_file_id
        Files of the job. A job submitted as an object has no input file.
    publication, published
        Destination of its answers in the signal store, and the counts of published ones.
    metadata
        The team's own notes.
    output_seconds
        Lifetime of its output and error file in seconds, from their creation; None if they are kept.
    accept_late
        Whether it runs although it is expected to miss its deadline.
    """

    id: str
    team: str
    queue: str
    model: str
    endpoint: str
    inputs: tuple[Input, ...]
    source: Source
    principal: str
    created_at: int
    expires_at: int
    completion_window: str
    priority: int
    budget_usd: float
    state: JobState = "validating"
    attempt: int = 1
    times: Mapping[str, int] = field(default_factory=dict)
    counts: RequestCounts = field(default_factory=RequestCounts)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    input_file_id: str = ""
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: tuple[JobError, ...] = ()
    publication: Publication | None = None
    published: Published = field(default_factory=Published)
    metadata: Mapping[str, str] = field(default_factory=dict)
    output_seconds: int | None = None
    accept_late: bool = False

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Read a record. A redrive sets the times of later states to null; these are dropped."""
        times = {name: at for name, at in values["times"].items() if at is not None}
        # `super()` without arguments fails in a data class with slots, because `slots=True` replaces the
        # class.
        return super(Job, cls).from_values({**values, "times": times})
