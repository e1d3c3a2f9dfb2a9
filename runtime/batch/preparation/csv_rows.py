"""Rows of comma-separated values (RFC 4180), one after another: a quoted field may hold ends of lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator

from batch.preparation.reading import Row, UnreadableInputError
from batch.preparation.request_checks import BadLine

#: Of the longest field, so many fit a line before it is not read to its end.
_FIELDS_OF_A_LINE = 4


def rows(chunks: Iterable[bytes], *, limit: int) -> Iterator[Row]:
    """Iterate over the rows of a file in UTF-8.

    Parameters
    ----------
    chunks
        The file's bytes, in pieces of any size.
    limit
        Characters of a field, at most; a longer one ends the file, because where it ends is not known.

    Raises
    ------
    UnreadableInputError
        If the rest of it cannot be read.
    """
    before = csv.field_size_limit(limit)
    reader = csv.reader(_text_lines(chunks, limit=_FIELDS_OF_A_LINE * limit), strict=True)
    try:
        yield from _rows(reader)
    except (csv.Error, UnicodeDecodeError) as error:
        reason = f"no comma-separated values in UTF-8: {error}; what follows was not read"
        raise UnreadableInputError(reason, line=reader.line_num + 1) from error
    finally:
        csv.field_size_limit(before)


def _rows(reader: Iterator[list[str]]) -> Iterator[Row]:
    """Iterate over rows after the names of the fields."""
    names = next(reader, [])
    if len(set(names)) != len(names):
        raise UnreadableInputError("the first line names a field twice; each needs a name of its own")
    for values in reader:
        line: int = reader.line_num  # type: ignore[attr-defined]
        if not values:
            continue
        if len(values) != len(names):
            reason = f"has {len(values)} values; the first line names {len(names)} fields"
            yield Row(line, BadLine(None, (reason,)))
        else:
            yield Row(line, dict(zip(names, values, strict=True)))


def _text_lines(chunks: Iterable[bytes], *, limit: int) -> Iterator[str]:
    """Iterate over lines with their ends, of so many characters at most; a byte order mark is left out."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest = ""
    for chunk in chunks:
        buffer = io.StringIO(rest + decoder.decode(chunk), newline="")
        lines = list(buffer)
        rest = lines.pop() if lines else ""
        yield from lines
        if len(rest) > limit:
            raise csv.Error(f"a line has more than {limit:,} characters")
    yield from io.StringIO(rest + decoder.decode(b"", final=True), newline="")
