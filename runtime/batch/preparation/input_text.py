"""Reads rows of text: lines and CSV, in bounded memory."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from batch.preparation.line_checks import BadLine

#: First bytes of files that are not text (RFC 1952, RFC 8878, and the documents of the formats).
_BEGINNINGS: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"BZh": "compressed with bzip2",
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "Parquet, whose name must end in .parquet",
}


@dataclass(frozen=True, slots=True)
class InputRow:
    """A row and its position."""

    line: int
    """Last line of the row in a text file, or the number of the row; from 1."""
    content: Mapping[str, Any] | BadLine
    """Its values by field, or its problem."""


class UnreadableInputError(Exception):
    """An input, or the rest of it, cannot be read.

    reason: The received content, the allowed content, and the action to take.
    line: First line or row that was not read, counted as in `InputRow`.
    """

    def __init__(self, reason: str, *, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


def text_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Iterate over the pieces of a text file, unchanged.

    pieces: Pieces from the first byte of the file.
    Raises UnreadableInputError if the first bytes are those of another format.
    """
    is_first = True
    for piece in pieces:
        if is_first:
            for beginning, kind in _BEGINNINGS.items():
                if piece.startswith(beginning):
                    raise UnreadableInputError(f"is not text: it is {kind}")
            is_first = False
        yield piece


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
