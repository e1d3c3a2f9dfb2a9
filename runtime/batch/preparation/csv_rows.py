"""Rows of comma-separated values (RFC 4180), one after another: a quoted field may hold ends of lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from batch.preparation.request_checks import BadLine


@dataclass(frozen=True, slots=True)
class Row:
    """A row at its place.

    Parameters
    ----------
    line
        Line of the file that it ends in, from 1; the first has the names of the fields.
    content
        Its values by field, or what is wrong with it.
    """

    line: int
    content: Mapping[str, str] | BadLine


def rows(chunks: Iterable[bytes], *, limit: int) -> Iterator[Row]:
    """Iterate over the rows of a file in UTF-8.

    Parameters
    ----------
    chunks
        The file's bytes, in pieces of any size.
    limit
        Characters of a field, at most; a longer one ends the file, because where it ends is not known.
    """
    before = csv.field_size_limit(limit)
    reader = csv.reader(_text_lines(chunks), strict=True)
    try:
        yield from _rows(reader)
    except (csv.Error, UnicodeDecodeError) as error:
        reason = f"no comma-separated values in UTF-8: {error}; what follows was not read"
        yield Row(reader.line_num + 1, BadLine(None, (reason,)))
    finally:
        csv.field_size_limit(before)


def _rows(reader: Iterator[list[str]]) -> Iterator[Row]:
    """Iterate over rows after the names of the fields."""
    names = next(reader, [])
    if len(set(names)) != len(names):
        yield Row(1, BadLine(None, ("the first line names a field twice; each needs a name of its own",)))
        return
    for values in reader:
        line: int = reader.line_num  # type: ignore[attr-defined]
        if not values:
            continue
        if len(values) != len(names):
            reason = f"has {len(values)} values; the first line names {len(names)} fields"
            yield Row(line, BadLine(None, (reason,)))
        else:
            yield Row(line, dict(zip(names, values, strict=True)))


def _text_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Iterate over lines with their ends; a mark of the byte order is left out."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest = ""
    for chunk in chunks:
        buffer = io.StringIO(rest + decoder.decode(chunk), newline="")
        lines = list(buffer)
        rest = lines.pop() if lines else ""
        yield from lines
    yield from io.StringIO(rest + decoder.decode(b"", final=True), newline="")
