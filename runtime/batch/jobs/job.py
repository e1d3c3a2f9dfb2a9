"""The record of a job: what was asked for, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from batch.contracts.publication import Published
from batch.contracts.request import Input, Publication
from batch.contracts.shard import Usage
from batch.contracts.states import JobState

#: How a job came in.
Source = Literal["api", "object", "schedule"]

#: The moment that each state is entered at, in the words of the OpenAI API.
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
class RequestCounts:
    """Requests of a job.

    Parameters
    ----------
    total, completed, failed
        All of them, those with an answer, and those that ended as an error.
    """

    total: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed, as the OpenAI API says it.

    Parameters
    ----------
    code
        A word for programs.
    message
        What was got, what is allowed, and what to do.
    line
        Line of the input, from 1, where it is one line's.
    param
        Field of the request, where it is one field's.
    """

    code: str
    message: str
    line: int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job; times are whole seconds since 1970.

    Parameters
    ----------
    id, team, queue, model, endpoint
        Its identifier, whose it is, where it waits, and what every line asks for.
    inputs
        What it reads, in this order.
    source, principal
        How it came in, and the ARN of who sent it; an object's sender is not known.
    created_at, expires_at
        When it came in, and when it must be finished.
    completion_window
        The same as it was asked for, such as ``24h``.
    priority
        Higher goes first.
    budget_usd
        What it may cost, in dollars.
    state
        Where it is.
    attempt
        How often it was started: 1, and one more with each redrive.
    times
        When it entered each state, by the words of `TIMES`.
    counts, usage, cost_usd
        Its requests, their tokens, and what they cost in dollars.
    input_file_id, output_file_id, error_file_id
        Its files; a job that came in as an object has no input file.
    errors
        Why it failed.
    publication, published
        Where its answers go in the signal store, and what became of them there.
    metadata
        The team's own notes.
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

    def to_values(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Job:
        """Read a record.

        Raises
        ------
        TypeError
            If it is not such a record.
        """
        publication = values.get("publication")
        return cls(
            **{
                **values,
                "publication": None if publication is None else Publication(**publication),
                "published": Published(**values.get("published", {})),
                "inputs": tuple(Input(**each) for each in values["inputs"]),
                "counts": RequestCounts(**values["counts"]),
                "usage": Usage(**values["usage"]),
                # A redrive takes back that the job had come to a state.
                "times": {name: at for name, at in values["times"].items() if at is not None},
                "errors": tuple(JobError(**each) for each in values["errors"]),
                "budget_usd": float(values["budget_usd"]),
                "cost_usd": float(values["cost_usd"]),
            }
        )
