"""Collects the body of a request, of a known length or in chunks (RFC 9112, section 7.1)."""

from __future__ import annotations

import re
from typing import Final

from request_filter.refused_request import RefusedRequestError

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?")
_LONGEST_LINE: Final = 1024


class BodyReader:
    """The body of one request.

    length: Its length. None if it comes in chunks.
    most: Largest length.
    Raises RefusedRequestError if it is longer.
    """

    def __init__(self, length: int | None, most: int) -> None:
        self._most = most
        self._missing = length
        self._content = bytearray()
        self._chunk = 0
        self._state = "size"
        self.size = 0
        self.complete = False
        if length is not None and length > most:
            raise self._too_large()

    def take(self, buffer: bytearray) -> bool:
        """Take from a buffer what belongs to the body, and return whether it is complete.

        Raises RefusedRequestError if it is longer than allowed, or not in chunks as it should be.
        """
        self.complete = self._take(buffer)
        return self.complete

    def _take(self, buffer: bytearray) -> bool:
        if self._missing is not None:
            self._missing -= self._move(buffer, self._missing)
            return self._missing == 0
        while self._state != "whole":
            if self._state == "data":
                self._chunk -= self._move(buffer, self._chunk)
                if self._chunk:
                    return False
                self._state = "end"
            line = self._line(buffer)
            if line is None:
                return False
            self._state = self._after(line)
        return True

    def _after(self, line: bytes) -> str:
        """Return the state after a line: what comes next."""
        if self._state == "size":
            size = _SIZE.fullmatch(line)
            if size is None:
                raise self._bad()
            self._chunk = int(size[1], 16)
            return "data" if self._chunk else "trailers"
        if self._state == "end":
            if line:
                raise self._bad()
            return "size"
        return "trailers" if line else "whole"

    def content(self) -> bytes:
        """Return the body."""
        return bytes(self._content)

    def _move(self, buffer: bytearray, most: int) -> int:
        """Move up to so many bytes from the buffer to the body, and return how many there were."""
        part = buffer[:most]
        del buffer[: len(part)]
        self.size += len(part)
        if self.size > self._most:
            raise self._too_large()
        self._content += part
        return len(part)

    def _line(self, buffer: bytearray) -> bytes | None:
        """Take a line without its end. None if it is not there yet."""
        end = buffer.find(b"\r\n")
        if end > _LONGEST_LINE or (end < 0 and len(buffer) > _LONGEST_LINE):
            raise self._bad()
        if end < 0:
            return None
        line = bytes(buffer[:end])
        del buffer[: end + 2]
        return line

    def _too_large(self) -> RefusedRequestError:
        return RefusedRequestError(
            413, f"the body has more than {self._most:,} bytes; send less", "request_too_large"
        )

    @staticmethod
    def _bad() -> RefusedRequestError:
        return RefusedRequestError(
            400, "the body is not in chunks as 'transfer-encoding' says", "bad_request"
        )
