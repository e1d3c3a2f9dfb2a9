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
