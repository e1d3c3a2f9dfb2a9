"""A job as it was submitted. Checks and planning read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inference_contracts.batch_configuration import Capacity, JobLimits
from inference_contracts.json_record import JsonRecord

#: Input formats: one request or row per line as JSON, rows as CSV, or Parquet.
InputFormat = Literal["jsonl", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class Input(JsonRecord):
    """An object that contains requests or rows.

    Parameters
    ----------
    bucket, key
        Where it lies in S3.
    format
        File format.
    """

    bucket: str
    key: str
    format: InputFormat = "jsonl"


@dataclass(frozen=True, slots=True)
class Publication(JsonRecord):
    """Destination of a job's answers in the signal store.

    The key of each answer is the custom_id of its line.

    Parameters
    ----------
    signal
        Name of the signal.
    version
        Submission time of the job, in milliseconds since 1970. Answers of an earlier job never replace later
        ones.
    ttl_seconds
        Seconds after which an answer expires.
    """

    signal: str
    version: int
    ttl_seconds: int


@dataclass(frozen=True, slots=True)
class RequestTemplate(JsonRecord):
    """Rules to turn a row into a request.

    Parameters
    ----------
    text
        Jinja2 template of the prompt.
    image_fields
        Fields of a row that name images in S3. The images go before the prompt.
    parameters
        Further fields of the request's body, such as ``max_tokens``.
    """

    text: str
    image_fields: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobRequest(JsonRecord):
    """A job as it was submitted.

    Parameters
    ----------
    job, team, queue, model, endpoint
        The job's identifier, its team, queue and model, and the API path of every line.
    inputs
        Inputs, in order.
    deadline
        Seconds since 1970.
    budget_usd
        Cost limit, in dollars.
    limits, capacity
        Limits of the job, and throughput and prices of its queue.
    skip_invalid
        Whether valid lines run although others are invalid. If false, one invalid line fails the job.
    default_output_tokens, image_tokens
        Tokens of an answer if its line sets no limit, and tokens of an image. Used for estimates.
    data_prefixes
        Prefixes in S3, ``s3://bucket/prefix/``, from which images may be read.
    template
        Rules to turn rows into requests; None if lines have bodies.
    publication
        Destination of answers in the signal store; None if answers go only to files.
    image_steps
        Steps of an image whose line names none; 0 if the model makes no images.
    """

    job: str
    team: str
    queue: str
    model: str
    endpoint: str
    inputs: tuple[Input, ...]
    deadline: float
    budget_usd: float
    capacity: Capacity
    limits: JobLimits = field(default_factory=JobLimits)
    skip_invalid: bool = False
    default_output_tokens: int = 1024
    image_tokens: int = 1280
    data_prefixes: tuple[str, ...] = ()
    template: RequestTemplate | None = None
    publication: Publication | None = None
    image_steps: int = 0
