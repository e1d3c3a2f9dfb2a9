"""What a worker needs to know of a job; written when the job is planned, and anew when it is redriven."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """How a row becomes a request.

    Parameters
    ----------
    text
        A Jinja2 template of the prompt.
    image_fields
        Fields of a row that name images in S3, which go before the prompt.
    parameters
        What else a request's body holds, such as ``max_tokens``.
    """

    text: str
    image_fields: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_values(cls, values: Mapping[str, Any] | None) -> PromptTemplate | None:
        """Read the part of a document that holds a template, if it holds one.

        Raises
        ------
        TypeError
            If it is not such a part.
        """
        if values is None:
            return None
        return cls(**{**values, "image_fields": tuple(values["image_fields"])})


@dataclass(frozen=True, slots=True)
class JobDescription:
    """One job, as its workers see it.

    Parameters
    ----------
    job
        The job's identifier.
    team
        Whose it is.
    model
        Name under which the endpoint serves the model.
    endpoint
        Path of the API that every line asks for, such as ``/v1/chat/completions``.
    deadline
        When it must be finished, in seconds since 1970.
    data_prefixes
        Prefixes in S3, ``s3://bucket/prefix/``, below which images may be read.
    template
        How rows become requests; None where lines have bodies.
    attempt
        Attempt at the job that runs until the deadline.
    """

    job: str
    team: str
    model: str
    endpoint: str
    deadline: float
    data_prefixes: tuple[str, ...] = ()
    template: PromptTemplate | None = None
    attempt: int = 1

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> JobDescription:
        """Read the document.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a document.
        """
        values = json.loads(text)
        return cls(
            **{
                **values,
                "data_prefixes": tuple(values["data_prefixes"]),
                "template": PromptTemplate.from_values(values["template"]),
            }
        )
