"""A job as it was submitted, and what a worker must know about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from inference_contracts.batch_configuration import Capacity, JobLimits
from inference_contracts.json_record import JsonRecord

# What a worker must know about a job. Planning writes it; a redrive writes it again.


@dataclass(frozen=True, slots=True)
class JobDescription(JsonRecord):
    """A job, as its workers see it."""

    job: str
    team: str
    model: str
    """Name under which the endpoint serves the model."""
    endpoint: str
    """API path of every line, such as ``/v1/chat/completions``."""
    deadline: float
    """Seconds since 1970."""
    data_prefixes: tuple[str, ...] = ()
    """Prefixes in S3, ``s3://bucket/prefix/``, from which images may be read."""
    attempt: int = 1
    """Number of the attempt that this deadline belongs to."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Build it, also from a document of the first release, whose workers rendered rows from a template.

        Raises TypeError if a field is unknown or missing, or if there is such a template.
        """
        known = {name: value for name, value in values.items() if name != "template"}
        if values.get("template") is not None:
            raise TypeError("an earlier release planned this job with a template; submit it again")
        return super(JobDescription, cls).from_values(known)


#: Input formats: one request or row per line as JSON, rows as CSV, or Parquet.
InputFormat = Literal["jsonl", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class Input(JsonRecord):
    """An object that contains requests or rows."""

    bucket: str
    key: str
    """`bucket`, `key`: Where it lies in S3."""
    format: InputFormat = "jsonl"
    """File format."""


@dataclass(frozen=True, slots=True)
class Publication(JsonRecord):
    """Destination of a job's answers in the signal store.

    The key of each answer is the custom_id of its line.
    """

    signal: str
    version: int
    """Submission time of the job, in milliseconds since 1970. Answers of an earlier job never replace later
    ones."""
    ttl_seconds: int
    """Seconds after which an answer expires."""


@dataclass(frozen=True, slots=True)
class RequestTemplate(JsonRecord):
    """Rules to turn a row into a request."""

    text: str
    """Jinja2 template of the prompt."""
    image_fields: tuple[str, ...] = ()
    """Fields of a row that name images in S3. The images go before the prompt."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request's body, such as ``max_tokens``."""


@dataclass(frozen=True, slots=True)
class JobRequest(JsonRecord):
    """A job as it was submitted."""

    job: str
    team: str
    queue: str
    model: str
    endpoint: str
    """`job`, `team`, `queue`, `model`, `endpoint`: The job's identifier, its team, queue and model, and the
    API path of every line."""
    inputs: tuple[Input, ...]
    """Inputs, in order."""
    deadline: float
    """Seconds since 1970."""
    budget_usd: float
    """Cost limit, in dollars."""
    capacity: Capacity
    limits: JobLimits = field(default_factory=JobLimits)
    """`limits`, `capacity`: Limits of the job, and throughput and prices of its queue."""
    skip_invalid: bool = False
    """Whether valid lines run although others are invalid. If false, one invalid line fails the job."""
    default_output_tokens: int = 1024
    image_tokens: int = 1280
    """`default_output_tokens`, `image_tokens`: Tokens of an answer if its line sets no limit, and tokens of
    an image. Used for estimates."""
    data_prefixes: tuple[str, ...] = ()
    """Prefixes in S3, ``s3://bucket/prefix/``, from which images may be read."""
    template: RequestTemplate | None = None
    """Rules to turn rows into requests; None if lines have bodies."""
    publication: Publication | None = None
    """Destination of answers in the signal store; None if answers go only to files."""
    image_steps: int = 0
    """Steps of an image whose line names none; 0 if the model makes no images."""
    public_name: str = ""
    """A second name of the model that lines may have; empty if there is none."""
