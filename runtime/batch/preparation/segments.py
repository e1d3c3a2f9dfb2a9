"""Segments: parts of a job's input, each checked by itself and all at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from batch.contracts.request import Input

#: Bytes of a segment: what one function checks in well under its fifteen minutes, and holds in memory.
SEGMENT_BYTES = 64 * 2**20

#: Where a part of an input begins and ends.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an input.

    Parameters
    ----------
    number
        Its place among all segments of the job, from 0.
    source
        Place of its input among the job's inputs, from 0.
    start, end
        Bytes of the input, or row groups of one in Parquet; the end not included.
    etag
        The version of the input that was there when it was cut.
    """

    number: int
    source: int
    start: int
    end: int
    etag: str

    def to_json(self) -> str:
        """Return the line of the list of segments."""
        return json.dumps(asdict(self), separators=(",", ":"))


def byte_ranges(each: Input, size: int) -> Iterator[Span]:
    """Iterate over the parts of an input that is text.

    A line may go on beyond its segment: it belongs to the one that it begins in. Comma-separated values are
    one segment, because a quoted field may hold ends of lines.

    Parameters
    ----------
    each
        The input.
    size
        Its bytes.
    """
    step = SEGMENT_BYTES if each.format == "jsonl" else max(size, 1)
    for start in range(0, size, step):
        yield start, min(start + step, size)


def row_group_ranges(groups: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Iterate over the parts of an input in Parquet: runs of row groups, none where there are no rows.

    Parameters
    ----------
    groups
        Rows of each row group, and its bytes before compression.
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
    """Iterate over the segments of a job's inputs, in order.

    Parameters
    ----------
    inputs
        ETag and parts of each input.
    """
    found = ((source, etag, span) for source, (etag, spans) in enumerate(inputs) for span in spans)
    for place, (source, etag, (start, end)) in enumerate(found):
        yield Segment(place, source, start, end, etag)
