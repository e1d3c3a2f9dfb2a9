"""Segments: parts of a job's input that are checked independently, and what their checks report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from batch.contracts.request import Input
from inference_contracts.batch_limits import SEGMENT_BYTES
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


# Rows of the error file for lines that never run, in OpenAI's format.

_SHOWN_IN_A_REASON = 10


def row(*, line: int, custom_id: str | None, code: str, reasons: Sequence[str]) -> bytes:
    """Return a row, with its line end.

    custom_id: The team's name for the line, if it has one.
    code: Stable error code for programs.
    reasons: All problems of the line.
    """
    shown = [*reasons[:_SHOWN_IN_A_REASON]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    error = {"code": code, "message": "; ".join(shown), "line": line}
    document = {"id": None, "custom_id": custom_id, "response": None, "error": error}
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def renumber_rows(rows: Iterable[bytes], lines_before: int) -> Iterator[bytes]:
    """Renumber the rows of a segment to lines of the whole input.

    rows: Complete rows, as `row` returns them.
    lines_before: Number of the input's lines before the segment.
    """
    for each in rows:
        document = json.loads(each)
        document["error"]["line"] += lines_before
        yield json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


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
