"""Whether a custom_id is used twice in a job of millions of lines, in the memory of a few.

Each segment leaves digests of its custom_ids, sorted, with the line of each; merged, equal ones meet.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# 16 bytes: of 50 million lines no two meet by chance. Then the line.
_RECORD = struct.Struct(">16sI")
_RECORDS_A_PIECE = 10_000


@dataclass(frozen=True, slots=True)
class Repetition:
    """A custom_id that is used again.

    Parameters
    ----------
    segment, line
        Where: the segment's number and its line, from 1.
    first_segment, first_line
        Where it was used first.
    """

    segment: int
    line: int
    first_segment: int
    first_line: int


def digests(ids: Iterable[tuple[str, int]]) -> bytes:
    """Return the digests of a run of a segment's custom_ids, sorted.

    Parameters
    ----------
    ids
        Each with its line of the segment.
    """
    records = [
        _RECORD.pack(
            hashlib.blake2b(custom_id.encode("utf-8", "surrogatepass"), digest_size=16).digest(), line
        )
        for custom_id, line in ids
    ]
    records.sort()
    return b"".join(records)


def merged(runs: Sequence[bytes]) -> Iterator[bytes]:
    """Iterate over the digests of a segment, sorted, in pieces.

    Parameters
    ----------
    runs
        What `digests` made of each run.
    """
    records = heapq.merge(*map(_split, runs))
    while piece := b"".join(itertools.islice(records, _RECORDS_A_PIECE)):
        yield piece


def _split(run: bytes) -> Iterator[bytes]:
    """Iterate over the records of a run."""
    return (run[start : start + _RECORD.size] for start in range(0, len(run), _RECORD.size))


def repetitions(segments: Sequence[Iterable[bytes]]) -> Iterator[Repetition]:
    """Iterate over the custom_ids that are used again, after the first use of each.

    Parameters
    ----------
    segments
        What `merged` made of each segment, in pieces of any size, by the segment's number.
    """
    streams = [_records(number, pieces) for number, pieces in enumerate(segments)]
    first: tuple[bytes, int, int] = (b"", 0, 0)
    for digest, segment, line in heapq.merge(*streams):
        if digest == first[0]:
            yield Repetition(segment, line, first[1], first[2])
        else:
            first = (digest, segment, line)


def _records(segment: int, pieces: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Iterate over the digests of a segment, each with its segment and line."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        whole = len(data) - len(data) % _RECORD.size
        rest = data[whole:]
        for digest, line in _RECORD.iter_unpack(data[:whole]):
            yield digest, segment, line
    if rest:
        raise ValueError(f"digests of segment {segment} end within a record")
