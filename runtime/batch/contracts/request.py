"""A job as it was submitted; what checking and planning read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from batch.contracts.description import PromptTemplate

#: How an input is read: requests or rows a line as JSON, rows as comma-separated values, or in Parquet.
InputFormat = Literal["jsonl", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class Input:
    """An object that holds requests or rows.

    Parameters
    ----------
    bucket, key
        Where it lies in S3.
    format
        How it is read.
    """

    bucket: str
    key: str
    format: InputFormat = "jsonl"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may hold; checked before anything is spent.

    Parameters
    ----------
    line_bytes
        Bytes of one line.
    lines
        Lines of all inputs.
    request_tokens
        Tokens of one request, input and answer together: the longest that the model takes.
    """

    line_bytes: int = 8 * 2**20
    lines: int = 50_000_000
    request_tokens: int = 131_072


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a queue's model does and costs, as the platform was planned; every figure is an estimate.

    Parameters
    ----------
    input_tokens_per_second, output_tokens_per_second
        Of all workers that the queue may use; each alone, without the other.
    usd_per_million_input_tokens, usd_per_million_output_tokens
        What a million tokens cost.
    places
        Shards that those workers hold at once.
    """

    input_tokens_per_second: float
    output_tokens_per_second: float
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    places: int = 1

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return what so many tokens cost, in dollars."""
        million = 1_000_000
        return (
            input_tokens * self.usd_per_million_input_tokens
            + output_tokens * self.usd_per_million_output_tokens
        ) / million


@dataclass(frozen=True, slots=True)
class Publication:
    """Where the answers of a job go in the signal store; the key of each is its line's custom_id.

    Parameters
    ----------
    signal
        Name of the signal.
    version
        When the job was submitted, in milliseconds since 1970: what an earlier job said never wins.
    ttl_seconds
        Seconds after which an answer is no longer true.
    """

    signal: str
    version: int
    ttl_seconds: int


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job as it was submitted.

    Parameters
    ----------
    job, team, queue, model, endpoint
        Its identifier, whose it is, where it waits, and what every line asks for.
    inputs
        What it reads, in this order.
    deadline
        When it must be finished, in seconds since 1970.
    budget_usd
        What it may cost, in dollars.
    limits, capacity
        What it may hold, and what its queue does.
    skip_invalid
        Whether valid lines run although others are not; without it one bad line fails the job.
    default_output_tokens, image_tokens
        Tokens of an answer where a line does not limit it, and of an image; for estimates.
    data_prefixes
        Prefixes in S3, ``s3://bucket/prefix/``, below which images may be read.
    template
        How rows become requests; None where lines have bodies.
    publication
        Where its answers go in the signal store; None where they stay in its files alone.
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
    limits: Limits = Limits()
    skip_invalid: bool = False
    default_output_tokens: int = 1024
    image_tokens: int = 1280
    data_prefixes: tuple[str, ...] = ()
    template: PromptTemplate | None = None
    publication: Publication | None = None

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> JobRequest:
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
                "inputs": tuple(Input(**each) for each in values["inputs"]),
                "limits": Limits(**values["limits"]),
                "capacity": Capacity(**values["capacity"]),
                "data_prefixes": tuple(values["data_prefixes"]),
                "template": PromptTemplate.from_values(values["template"]),
                "publication": _publication(values.get("publication")),
            }
        )


def _publication(values: Mapping[str, Any] | None) -> Publication | None:
    """Read where answers go, if they go anywhere."""
    return None if values is None else Publication(**values)
