"""Lines of a part of an object, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an object.

    Parameters
    ----------
    offset
        Bytes of the object before it.
    size
        Its bytes, without its end.
    content
        What it holds; None where that is more than the limit and was thrown away.
    """

    offset: int
    size: int
    content: bytes | None


def read_lines(chunks: Iterable[bytes], *, first_offset: int, limit: int) -> Iterator[Line]:
    """Iterate over the lines of a stream; the last need not end with a newline.

    Parameters
    ----------
    chunks
        The stream's bytes, in pieces of any size.
    first_offset
        Bytes of the object before the stream.
    limit
        Bytes of a line that are kept; a longer one is counted and thrown away.
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
    """Iterate over the lines of an object whose first byte is in a range.

    Ranges that follow one another give every line once, wherever they cut.

    Parameters
    ----------
    chunks
        The object's bytes from ``max(start - 1, 0)`` on: the byte before tells whether a line begins.
    start, end
        The range in bytes, its end not included.
    limit
        Bytes of a line that are kept.
    """
    first = max(start - 1, 0)
    pieces = _until_line_end(chunks, end - first, begins_line=start == 0)
    for line in read_lines(pieces, first_offset=first, limit=limit):
        if start <= line.offset < end:
            yield line


def _until_line_end(chunks: Iterable[bytes], size: int, *, begins_line: bool) -> Iterator[bytes]:
    """Iterate over so many bytes, and over the rest of a line that began within them."""
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
