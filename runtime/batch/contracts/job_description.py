"""What a worker must know about a job. Planning writes it; a redrive writes it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from inference_contracts.json_record import JsonRecord


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
