"""Rows and errors common to the readers of all input formats."""

from __future__ import annotations

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
