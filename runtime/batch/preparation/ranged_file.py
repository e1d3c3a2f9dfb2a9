"""An object in S3 as a file that is read by ranges; never is more of it in memory than is asked for."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class RangedFile(io.RawIOBase):
    """A file that can be read anywhere.

    Parameters
    ----------
    read
        Returns its bytes from a place to another, the end not included.
    size
        Its bytes.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be read anywhere."""
        return True

    def tell(self) -> int:
        """Return where it is read next."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Say where it is read next.

        Raises
        ------
        ValueError
            If that is before its first byte.
        """
        place = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence] + offset
        if place < 0:
            raise ValueError(f"got byte {place}; a file begins at 0")
        self._place = place
        return place

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer as far as the file goes."""
        end = min(self._place + len(buffer), self._size)
        if end <= self._place:
            return 0
        content = self._read(self._place, end)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)
