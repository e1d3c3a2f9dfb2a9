"""Reads the lines of a shard in bounded memory: one piece is split while the next one arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from botocore.exceptions import (
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)
from urllib3.exceptions import HTTPError

from batch.worker.bucket_client import BucketClient, OpenObject, in_thread

_PIECE_BYTES: Final = 2**20
#: Bytes kept of a line that is too long: enough for the fields before its body.
_HEAD_BYTES: Final = 4096
_CONNECTIONS_IN_VAIN: Final = 8
_LOST_CONNECTION: Final = (
    EndpointConnectionError,
    HTTPClientError,
    HTTPError,
    IncompleteReadError,
    OSError,
    ResponseStreamingError,
)


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line of the file, not parsed yet."""

    ordinal: int
    """Its index, from 0."""
    content: bytes
    """Its bytes; only the first ones if the line is too long."""
    too_long: bool = False


class ShardReader:
    """Reads one shard once."""

    def __init__(self, bucket: BucketClient, key: str, *, line_bytes: int) -> None:
        self._bucket = bucket
        self._key = key
        self._maximum = line_bytes
        self._read = 0
        self._size: int | None = None
        self._ordinal = 0
        #: Bytes of an unfinished line, and whether it is too long to be kept.
        self._rest = bytearray()
        self._skips = False

    @property
    def remaining(self) -> float:
        """Share of the file that has not been read yet."""
        return 1.0 if self._size is None else 1 - self._read / max(1, self._size)

    async def batches(self) -> AsyncIterator[list[RawLine]]:
        """Yield the lines, all those of one piece of the file at a time.

        Raises MissingObjectError if the shard does not exist.
        """
        pieces = self._pieces()
        following = asyncio.create_task(anext(pieces, b""))
        try:
            while piece := await following:
                following = asyncio.create_task(anext(pieces, b""))
                if lines := self._split(piece):
                    yield lines
            if last := self._end():
                yield [last]
        finally:
            following.cancel()

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Yield the file's bytes. A lost connection resumes at the same byte."""
        in_vain = 0
        while self._size is None or self._read < self._size:
            try:
                source = await self._bucket.open(self._key, self._read)
                self._size = self._read + source.size
                async for piece in _pieces_of(source):
                    in_vain = 0
                    self._read += len(piece)
                    yield piece
            except _LOST_CONNECTION:
                in_vain += 1
                if in_vain == _CONNECTIONS_IN_VAIN:
                    raise
                await asyncio.sleep(0.1 * 2**in_vain)

    def _split(self, piece: bytes) -> list[RawLine]:
        first, *others = piece.split(b"\n")
        self._keep(first)
        if not others:
            return []
        *whole, rest = others
        lines = [self._finish()]
        for content in whole:
            if len(content) > self._maximum:
                lines.append(RawLine(self._ordinal, content[:_HEAD_BYTES], too_long=True))
            else:
                lines.append(RawLine(self._ordinal, content))
            self._ordinal += 1
        self._keep(rest)
        return lines

    def _keep(self, content: bytes) -> None:
        """Add bytes to the unfinished line, unless it is too long."""
        if self._skips:
            return
        self._rest += content
        if len(self._rest) > self._maximum:
            del self._rest[_HEAD_BYTES:]
            self._skips = True

    def _finish(self) -> RawLine:
        line = RawLine(self._ordinal, bytes(self._rest), too_long=self._skips)
        self._ordinal += 1
        self._rest.clear()
        self._skips = False
        return line

    def _end(self) -> RawLine | None:
        """Return the last line, if the file does not end with a line end."""
        return self._finish() if self._rest else None


async def _pieces_of(source: OpenObject) -> AsyncIterator[bytes]:
    while piece := await in_thread(source.stream.read, _PIECE_BYTES):
        yield piece
