"""An object in S3 as a file that is read by byte ranges. Memory holds only the requested range."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class RangedFile(io.RawIOBase):
    """A seekable, read-only file.

    Parameters
    ----------
    read
        Returns a byte range; the end is excluded.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position of the next read.

        Raises
        ------
        ValueError
            If the position is before the first byte.
        """
        place = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence] + offset
        if place < 0:
            raise ValueError(f"got byte {place}; a file begins at 0")
        self._place = place
        return place

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, up to the end of the file."""
        end = min(self._place + len(buffer), self._size)
        if end <= self._place:
            return 0
        content = self._read(self._place, end)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)
