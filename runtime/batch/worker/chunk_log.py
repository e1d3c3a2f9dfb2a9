"""The commit: results of a shard as an append-only log, of which every entry is created once.

An entry is an object that is created only if there is none of its number. Whoever finds that number taken
reads what stands there, drops what it holds of it, and writes the rest under the next. So whoever writes
entry `n` has read all before it, and no line is in two entries, with any number of writers: a worker that got
the same message, one that hung and woke, or a write that arrives long after its writer was killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from batch.contracts.keys import ShardKeys
from batch.worker.bucket import Bucket
from batch.worker.ordinals import Ordinals
from batch.worker.rows import RowIdentifier, Tally

_ATTEMPTS: Final = "attempts"
#: Entries that are read at the same time when a shard is taken up again.
_READ_AHEAD: Final = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """An entry of the log.

    Parameters
    ----------
    body
        Rows, each with its end of line.
    attempts
        Requests that were sent for them.
    """

    body: bytes
    attempts: int

    @property
    def rows(self) -> Sequence[bytes]:
        """The rows, without their ends."""
        return self.body.split(b"\n")[:-1]


class ChunkStore(Protocol):
    """Where entries lie."""

    async def count(self) -> int:
        """Return how many entries there are; they have the numbers from 0."""

    async def create(self, sequence: int, chunk: Chunk) -> bool:
        """Write an entry, or return False if there is one of that number."""

    async def read(self, sequence: int) -> Chunk:
        """Return an entry that is there."""


class BucketChunks:
    """Entries in S3.

    Parameters
    ----------
    bucket
        The batch bucket.
    keys
        The shard's keys.
    """

    def __init__(self, bucket: Bucket, keys: ShardKeys) -> None:
        self._bucket = bucket
        self._keys = keys

    async def count(self) -> int:
        """Return how many entries there are."""
        return len(await self._bucket.keys(self._keys.chunks))

    async def create(self, sequence: int, chunk: Chunk) -> bool:
        """Write an entry, or return False if there is one of that number.

        Parameters
        ----------
        sequence
            Its number.
        chunk
            The entry.
        """
        metadata = {_ATTEMPTS: str(chunk.attempts)}
        return await self._bucket.create(self._keys.chunk(sequence), chunk.body, metadata)

    async def read(self, sequence: int) -> Chunk:
        """Return an entry that is there.

        Parameters
        ----------
        sequence
            Its number.

        Raises
        ------
        CorruptLogError
            If it is not: somebody deleted it.
        """
        key = self._keys.chunk(sequence)
        found = await self._bucket.read(key)
        if found is None:
            raise CorruptLogError(f"{key} is gone: entries of a log are never deleted while its job runs")
        return Chunk(found.body, int(found.metadata[_ATTEMPTS]))


class CorruptLogError(Exception):
    """A log that no worker wrote: says what is wrong with it."""


class ChunkLog:
    """A shard's log as one writer knows it.

    Parameters
    ----------
    store
        Where its entries lie.
    identifier
        Makes rows' identifiers and reads them.
    most_bytes
        Rows that may wait for their commit; `add` waits above that.
    """

    def __init__(self, store: ChunkStore, identifier: RowIdentifier, *, most_bytes: int) -> None:
        self._store = store
        self._identifier = identifier
        self._most = most_bytes
        self._next = 0
        self._committed = Ordinals()
        #: What the rows add up to that are in the log.
        self.tally = Tally()
        self._rows: dict[int, bytes] = {}
        self._bytes = 0
        self._attempts = 0
        #: What was tried to write under the next number.
        self._tried: list[Chunk] = []
        self._lock = asyncio.Lock()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def committed(self) -> Ordinals:
        """Lines that are in the log."""
        return self._committed

    @property
    def waiting_bytes(self) -> int:
        """Rows that are not in the log yet."""
        return self._bytes

    async def catch_up(self) -> None:
        """Read what others wrote."""
        async for chunk in read_chunks(self._store, self._next, await self._store.count()):
            self._learn(chunk)

    async def add(self, ordinal: int, row: bytes, attempts: int) -> None:
        """Hand over a line's result; it is kept once `commit` was called after that.

        Parameters
        ----------
        ordinal
            The line.
        row
            Its row, without an end.
        attempts
            Requests that were sent for it.
        """
        await self._has_room.wait()
        if ordinal in self._committed:
            # Another brought it while this writer asked for it.
            return
        self._rows[ordinal] = row
        self._attempts += attempts
        self._bytes += len(row)
        self._make_room()

    async def commit(self) -> None:
        """Write all rows that were handed over; after an error nothing is lost: call it again."""
        async with self._lock:
            while self._rows:
                chunk = Chunk(b"".join(row + b"\n" for row in self._rows.values()), self._attempts)
                self._tried.append(chunk)
                created = await self._store.create(self._next, chunk)
                self._learn(chunk if created else await self._store.read(self._next))

    def _learn(self, chunk: Chunk) -> None:
        """Take note of the next entry."""
        for row in chunk.rows:
            ordinal = self._identifier.ordinal(row)
            if self._committed.add(ordinal):
                self.tally.add(row)
            own = self._rows.pop(ordinal, b"")
            self._bytes -= len(own)
        # It may be this writer's own, though the answer to its writing was lost.
        if chunk in self._tried:
            self._attempts -= chunk.attempts
        self._tried.clear()
        self._next += 1
        self._make_room()

    def _make_room(self) -> None:
        if self._bytes < self._most:
            self._has_room.set()
        else:
            self._has_room.clear()


async def read_chunks(store: ChunkStore, first: int, end: int) -> AsyncIterator[Chunk]:
    """Yield entries in their order, the next ones already being read.

    Parameters
    ----------
    store
        Where they lie.
    first, end
        The first number, and the one after the last.
    """
    reads = [
        asyncio.create_task(store.read(number)) for number in range(first, min(first + _READ_AHEAD, end))
    ]
    try:
        for number in range(first, end):
            chunk = await reads.pop(0)
            if number + _READ_AHEAD < end:
                reads.append(asyncio.create_task(store.read(number + _READ_AHEAD)))
            yield chunk
    finally:
        for read in reads:
            read.cancel()
