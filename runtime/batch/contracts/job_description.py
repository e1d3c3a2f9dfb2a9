"""What a worker must know about a job. Planning writes it; a redrive writes it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from batch.json_record import JsonRecord


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
class JobDescription(JsonRecord):
    """A job, as its workers see it.

    Parameters
    ----------
    model
        Name under which the endpoint serves the model.
    endpoint
        API path of every line, such as ``/v1/chat/completions``.
    deadline
        Seconds since 1970.
    data_prefixes
        Prefixes in S3, ``s3://bucket/prefix/``, from which images may be read.
    template
        Rules to turn rows into requests; None if lines have bodies.
    attempt
        Number of the attempt that this deadline belongs to.
    """

    job: str
    team: str
    model: str
    endpoint: str
    deadline: float
    data_prefixes: tuple[str, ...] = ()
    template: RequestTemplate | None = None
    attempt: int = 1
