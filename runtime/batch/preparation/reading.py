"""What reading an input gives, whatever its format, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from batch.preparation.request_checks import BadLine

#: How files begin that are no text (RFC 1952, RFC 8878, and the formats' own documents).
_BEGINNINGS: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"BZh": "compressed with bzip2",
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "Parquet, whose name must end in .parquet",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row at its place.

    Parameters
    ----------
    line
        Line of the file that it ends in, where rows are text, or its number; from 1.
    content
        Its values by field, or what is wrong with it.
    """

    line: int
    content: Mapping[str, Any] | BadLine


class UnreadableInputError(Exception):
    """An input, or the rest of one, that cannot be read: says why.

    Parameters
    ----------
    reason
        What was got, what is allowed, and what to do.
    line
        Line or row, counted as `Row` does, from which on nothing was read.
    """

    def __init__(self, reason: str, *, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


def text_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Iterate over a file that is text, in the same pieces.

    Parameters
    ----------
    pieces
        The file from its first byte on.

    Raises
    ------
    UnreadableInputError
        If it begins as something else does.
    """
    is_first = True
    for piece in pieces:
        if is_first:
            for beginning, kind in _BEGINNINGS.items():
                if piece.startswith(beginning):
                    raise UnreadableInputError(f"is no text: it is {kind}")
            is_first = False
        yield piece
