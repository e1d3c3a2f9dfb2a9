"""The result of checking a segment."""

from __future__ import annotations

from dataclasses import dataclass

from batch.json_record import JsonRecord


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
        Reason why the rest could not be read; empty if all was read.
    """

    number: int
    source: int
    lines: int
    invalid: int
    shards: tuple[ShardEntry, ...]
    unreadable: str = ""
