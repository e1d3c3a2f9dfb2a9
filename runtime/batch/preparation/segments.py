"""Segments: parts of a job's input that are checked independently and in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from batch.contracts.request import Input
from inference_contracts.batch_limits import SEGMENT_BYTES
from inference_contracts.json_record import JsonRecord

#: Start and end of a part of an input.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Segment(JsonRecord):
    """A part of an input."""

    number: int
    """Index among all segments of the job, from 0."""
    source: int
    """Index of its input among the job's inputs, from 0."""
    start: int
    end: int
    """`start`, `end`: Bytes of the input, or row groups of a Parquet input; the end is excluded."""
    etag: str
    """ETag of the input at the time when it was cut; empty if it could not be read."""


def byte_ranges(each: Input, size: int) -> Iterator[Span]:
    """Iterate over the parts of a text input.

    A line may extend beyond its segment. It belongs to the segment in which it starts. CSV is one segment,
    because a quoted field may contain line ends.
    """
    step = SEGMENT_BYTES if each.format == "jsonl" else max(size, 1)
    for start in range(0, size, step):
        yield start, min(start + step, size)


def row_group_ranges(groups: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Iterate over the parts of a Parquet input: runs of row groups. An input without rows has no part.

    groups: Rows and uncompressed bytes of each row group.
    """
    start = held = rows = 0
    for place, (count, size) in enumerate(groups):
        if rows and held + size > SEGMENT_BYTES:
            yield start, place
            start = place
            held = rows = 0
        held += size
        rows += count
    if rows:
        yield start, len(groups)


def number(inputs: Iterable[tuple[str, Iterable[Span]]]) -> Iterator[Segment]:
    """Iterate over the numbered segments of a job's inputs, in order.

    inputs: ETag and parts of each input.
    """
    found = ((source, etag, span) for source, (etag, spans) in enumerate(inputs) for span in spans)
    for place, (source, etag, (start, end)) in enumerate(found):
        yield Segment(place, source, start, end, etag)
