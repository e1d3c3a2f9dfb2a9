"""The result of checking a segment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from inference_contracts.json_record import JsonRecord


@dataclass(frozen=True, slots=True)
class ShardEntry(JsonRecord):
    """An entry of the list of shards: a shard that was written."""

    shard: str
    """Name of the shard within the job."""
    lines: int
    input_tokens: int
    output_tokens: int
    """`input_tokens`, `output_tokens`: Estimated tokens of all its lines."""


@dataclass(frozen=True, slots=True)
class SegmentReport(JsonRecord):
    """Result of checking one segment."""

    number: int
    source: int
    """Index of its input among the job's inputs."""
    lines: int
    """Number of its lines, including empty ones."""
    invalid: int
    """Number of invalid lines."""
    shards: tuple[ShardEntry, ...]
    """Shards of the valid lines."""
    unreadable: str = ""
    """Reason why the rest has no readable content; empty if all was read."""
    fault: str = ""
    """Reason why S3 did not give the input or the rest of it; empty if it did."""

    def to_values(self) -> dict[str, Any]:
        """Return the fields by name. Functions of an earlier release do not know `fault`."""
        values = asdict(self)
        return values if self.fault else {name: each for name, each in values.items() if name != "fault"}
