"""What checking a segment found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A shard that was written; a line of the list of shards.

    Parameters
    ----------
    shard
        Its name within the job.
    lines
        Its lines.
    input_tokens, output_tokens
        Estimated tokens of all of them.
    """

    shard: str
    lines: int
    input_tokens: int
    output_tokens: int

    def to_json(self) -> str:
        """Return the line of the list of shards."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """What checking a segment found.

    Parameters
    ----------
    number
        The segment's number.
    source
        Place of its input among the job's inputs.
    lines
        Its lines, empty ones included.
    invalid
        Lines that will not run.
    shards
        The shards that were made of the others.
    unreadable
        Why the rest of it was not read; empty where all of it was.
    """

    number: int
    source: int
    lines: int
    invalid: int
    shards: tuple[ShardEntry, ...]
    unreadable: str = ""

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> SegmentReport:
        """Read the document.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a document.
        """
        values = json.loads(text)
        return cls(**{**values, "shards": tuple(ShardEntry(**each) for each in values["shards"])})
