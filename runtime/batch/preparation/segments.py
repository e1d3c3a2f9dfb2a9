"""Segments: parts of a job's input, each checked by itself and all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from batch.contracts.request import Input

#: Bytes of a segment: what one function checks in well under its fifteen minutes, and holds in memory.
SEGMENT_BYTES = 64 * 2**20


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
        Bytes of the input, the end not included.
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


def cut(inputs: Sequence[Input], sizes: Sequence[tuple[int, str]]) -> Iterator[Segment]:
    """Iterate over the segments of a job's inputs, in order.

    A line may go on beyond its segment: it belongs to the one that it begins in. Comma-separated values are
    one segment, because a quoted field may hold ends of lines.

    Parameters
    ----------
    inputs
        The inputs.
    sizes
        Bytes and ETag of each.
    """
    number = 0
    for source, (each, (size, etag)) in enumerate(zip(inputs, sizes, strict=True)):
        step = SEGMENT_BYTES if each.format == "jsonl" else max(size, 1)
        for start in range(0, size, step):
            yield Segment(number, source, start, min(start + step, size), etag)
            number += 1
