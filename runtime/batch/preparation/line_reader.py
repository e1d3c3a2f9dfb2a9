"""Reads lines from a part of an object in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an object."""

    offset: int
    """Number of the object's bytes before the line."""
    size: int
    """Size in bytes, without the line end."""
    content: bytes | None
    """The line's bytes; None if the line exceeded the limit."""


def read_lines(chunks: Iterable[bytes], *, first_offset: int, limit: int) -> Iterator[Line]:
    """Iterate over the lines of a stream. The last line needs no line end.

    chunks: The stream's bytes, in pieces of any size.
    first_offset: Number of the object's bytes before the stream.
    limit: Largest line, in bytes. The content of a longer one is dropped, only its size is counted.
    """
    offset, size = first_offset, 0
    kept: list[bytes] = []
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            size += len(piece)
            kept.append(piece)
            yield Line(offset, size, b"".join(kept) if size <= limit else None)
            offset += size + 1
            size, kept = 0, []
        size += len(rest)
        if size <= limit:
            kept.append(rest)
        else:
            kept = []
    if size:
        yield Line(offset, size, b"".join(kept) if size <= limit else None)


def lines_that_begin_within(chunks: Iterable[bytes], *, start: int, end: int, limit: int) -> Iterator[Line]:
    """Iterate over the lines of an object whose first byte lies in a range.

    Adjacent ranges return every line exactly once, wherever they cut.

    chunks: The object's bytes from ``max(start - 1, 0)`` on. The byte before the range tells whether a line
        starts at the range.
    start, end: The range in bytes; the end is excluded.
    limit: Largest line, in bytes.
    """
    first = max(start - 1, 0)
    pieces = _until_line_end(chunks, end - first, begins_line=start == 0)
    for line in read_lines(pieces, first_offset=first, limit=limit):
        if start <= line.offset < end:
            yield line


def _until_line_end(chunks: Iterable[bytes], size: int, *, begins_line: bool) -> Iterator[bytes]:
    """Iterate over this many bytes, plus the rest of a line that started within them."""
    remaining, is_open = size, False
    for chunk in chunks:
        inside, beyond = chunk[:remaining], chunk[remaining:]
        remaining -= len(inside)
        if inside.endswith(b"\n"):
            begins_line, is_open = True, False
        elif b"\n" in inside or (inside and begins_line):
            begins_line, is_open = False, True
        yield inside
        if remaining:
            continue
        if not is_open:
            return
        line_end = beyond.find(b"\n")
        if line_end >= 0:
            yield beyond[: line_end + 1]
            return
        yield beyond
