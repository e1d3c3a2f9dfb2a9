"""Finds a repeated custom_id among millions of lines with little memory.

Each segment stores sorted digests of its custom_ids, each with its line. In a merge of all segments, equal
digests meet.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# 16 bytes: a collision by chance is practically impossible among 50 million lines. The line number follows.
_RECORD = struct.Struct(">16sI")
_RECORDS_A_PIECE = 10_000


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repeated custom_id."""

    segment: int
    line: int
    """`segment`, `line`: Place of the repetition: number of the segment, and line from 1."""
    first_segment: int
    first_line: int
    """`first_segment`, `first_line`: Place of the first use."""


def digests(ids: Iterable[tuple[str, int]]) -> bytes:
    """Return the sorted digests of the custom_ids of a run.

    ids: Custom_ids, each with its line of the segment.
    """
    records = [
        _RECORD.pack(
            hashlib.blake2b(custom_id.encode("utf-8", "surrogatepass"), digest_size=16).digest(), line
        )
        for custom_id, line in ids
    ]
    records.sort()
    return b"".join(records)


def merge_runs(runs: Sequence[bytes]) -> Iterator[bytes]:
    """Merge the runs of a segment, and iterate over the sorted digests in pieces.

    runs: Results of `digests` for each run.
    """
    records = heapq.merge(*map(_split, runs))
    while piece := b"".join(itertools.islice(records, _RECORDS_A_PIECE)):
        yield piece


def _split(run: bytes) -> Iterator[bytes]:
    return (run[start : start + _RECORD.size] for start in range(0, len(run), _RECORD.size))


def repetitions(segments: Sequence[Iterable[bytes]]) -> Iterator[Repetition]:
    """Iterate over all repeated uses of custom_ids.

    segments: Results of `merge_runs` by segment number, in pieces of any size.
    """
    streams = [_records(number, pieces) for number, pieces in enumerate(segments)]
    first: tuple[bytes, int, int] = (b"", 0, 0)
    for digest, segment, line in heapq.merge(*streams):
        if digest == first[0]:
            yield Repetition(segment, line, first[1], first[2])
        else:
            first = (digest, segment, line)


def _records(segment: int, pieces: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    rest = b""
    for piece in pieces:
        data = rest + piece
        whole = len(data) - len(data) % _RECORD.size
        rest = data[whole:]
        for digest, line in _RECORD.iter_unpack(data[:whole]):
            yield digest, segment, line
    if rest:
        raise ValueError(f"digests of segment {segment} end within a record")
