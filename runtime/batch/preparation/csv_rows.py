"""Reads rows of CSV (RFC 4180) one by one; a quoted field may contain line ends."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator

from batch.preparation.input_text import InputRow, UnreadableInputError
from batch.preparation.line_checks import BadLine

#: A line can contain this many fields of the longest size. The rest of the line is not read.
_FIELDS_OF_A_LINE = 4


def rows(chunks: Iterable[bytes], *, limit: int) -> Iterator[InputRow]:
    """Iterate over the rows of a UTF-8 file.

    chunks: The file's bytes, in pieces of any size.
    limit: Most characters of a field. A longer field ends the reading, because its end is unknown.
    Raises UnreadableInputError if the rest of the file cannot be read.
    """
    before = csv.field_size_limit(limit)
    reader = csv.reader(_text_lines(chunks, limit=_FIELDS_OF_A_LINE * limit), strict=True)
    try:
        yield from _rows(reader)
    except (csv.Error, UnicodeDecodeError) as error:
        reason = f"is not CSV in UTF-8: {error}; the rest was not read"
        raise UnreadableInputError(reason, line=reader.line_num + 1) from error
    finally:
        csv.field_size_limit(before)


def _rows(reader: Iterator[list[str]]) -> Iterator[InputRow]:
    """Iterate over the rows after the header."""
    names = next(reader, [])
    if len(set(names)) != len(names):
        raise UnreadableInputError(
            "the first line has two fields with the same name; give each a unique name"
        )
    for values in reader:
        line: int = reader.line_num  # type: ignore[attr-defined]
        if not values:
            continue
        if len(values) != len(names):
            reason = f"has {len(values)} values; the first line has {len(names)} fields"
            yield InputRow(line, BadLine(None, (reason,)))
        else:
            yield InputRow(line, dict(zip(names, values, strict=True)))


def _text_lines(chunks: Iterable[bytes], *, limit: int) -> Iterator[str]:
    """Iterate over lines with their line ends, cut at a limit of characters. A byte order mark is dropped."""
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
