"""The result of checking a segment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from inference_contracts.json_record import JsonRecord


@dataclass(frozen=True, slots=True)
class ShardEntry(JsonRecord):
    """An entry of the list of shards: a shard that was written.

    Parameters
    ----------
    shard
        Name of the shard within the job.
    input_tokens, output_tokens
        Estimated tokens of all its lines.
    """

    shard: str
    lines: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class SegmentReport(JsonRecord):
    """Result of checking one segment.

    Parameters
    ----------
    source
        Index of its input among the job's inputs.
    lines
        Number of its lines, including empty ones.
    invalid
        Number of invalid lines.
    shards
        Shards of the valid lines.
    unreadable
        Reason why the rest has no readable content; empty if all was read.
    fault
        Reason why S3 did not give the input or the rest of it; empty if it did.
    """

    number: int
    source: int
    lines: int
    invalid: int
    shards: tuple[ShardEntry, ...]
    unreadable: str = ""
    fault: str = ""

    def to_values(self) -> dict[str, Any]:
        """Return the fields by name. Functions of an earlier release do not know `fault`."""
        values = asdict(self)
        return values if self.fault else {name: each for name, each in values.items() if name != "fault"}
