"""Commits the results of a shard to an append-only log. Every entry is created once.

An entry is an object that is created only if no object has its number. A writer that finds the number taken
reads that entry, drops the rows that it contains, and writes the rest under the next number. So the writer of
entry `n` has read all earlier entries, and no line is in two entries. This holds for any number of writers: a
worker that received the same message, a worker that hung and resumed, or a write that arrives long after its
writer was killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from batch.worker.bucket_client import BucketClient
from batch.worker.rows import RowIdentifier, Tally
from inference_contracts.batch_keys import ShardKeys

# A set of whole numbers from 0, with one bit for each.


class Ordinals:
    """Ordinals of the lines of a shard."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, ordinal: int) -> bool:
        byte = ordinal >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & (1 << (ordinal & 7)))

    def add(self, ordinal: int) -> bool:
        """Add a number, and return whether it was new."""
        if ordinal in self:
            return False
        byte = ordinal >> 3
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1))  # at least doubles, so copies are rare
        self._bits[byte] |= 1 << (ordinal & 7)
        self._count += 1
        return True


_ATTEMPTS: Final = "attempts"
#: Entries read in parallel when a worker resumes a shard.
_READ_AHEAD: Final = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """An entry of the log."""

    body: bytes
    """Rows, each with its line end."""
    attempts: int
    """Number of requests sent for these rows."""

    @property
    def rows(self) -> Sequence[bytes]:
        """Rows without their line ends."""
        return self.body.split(b"\n")[:-1]


class ChunkStore(Protocol):
    """Storage of entries."""

    async def count(self) -> int:
        """Return the number of entries. Entries are numbered from 0."""

    async def create(self, sequence: int, chunk: Chunk) -> bool:
        """Write an entry and return True; return False if the number is taken."""

    async def read(self, sequence: int) -> Chunk:
        """Return an existing entry."""


class BucketChunks:
    def __init__(self, bucket: BucketClient, keys: ShardKeys) -> None:
        self._bucket = bucket
        self._keys = keys

    async def count(self) -> int:
        """Return the number of entries."""
        return len(await self._bucket.keys(self._keys.chunks))

    async def create(self, sequence: int, chunk: Chunk) -> bool:
        """Write an entry and return True; return False if the number is taken."""
        metadata = {_ATTEMPTS: str(chunk.attempts)}
        return await self._bucket.create(self._keys.chunk(sequence), chunk.body, metadata)

    async def read(self, sequence: int) -> Chunk:
        """Return an existing entry.

        Raises CorruptLogError if it does not exist, because somebody deleted it.
        """
        key = self._keys.chunk(sequence)
        found = await self._bucket.read(key)
        if found is None:
            raise CorruptLogError(f"{key} is gone: entries of a log are never deleted while its job runs")
        return Chunk(found.body, int(found.metadata[_ATTEMPTS]))


class CorruptLogError(Exception):
    """The log contains something that no worker writes. The message tells what."""


class ChunkLog:
    """A shard's log, as one writer sees it.

    store: Storage of its entries.
    identifier: Creates and parses the identifiers of rows.
    max_bytes: Bytes of rows that may wait for their commit. Above that, `add` waits.
    """

    def __init__(self, store: ChunkStore, identifier: RowIdentifier, *, max_bytes: int) -> None:
        self._store = store
        self._identifier = identifier
        self._maximum = max_bytes
        self._next = 0
        self._committed = Ordinals()
        #: Totals of the rows in the log.
        self.tally = Tally()
        self._rows: dict[int, bytes] = {}
        self._bytes = 0
        self._attempts = 0
        #: The last content that this writer tried to write under the next number.
        self._tried: list[Chunk] = []
        self._lock = asyncio.Lock()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def committed(self) -> Ordinals:
        """Ordinals of the lines in the log."""
        return self._committed

    @property
    def waiting_bytes(self) -> int:
        """Bytes of rows that are not in the log yet."""
        return self._bytes

    async def catch_up(self) -> None:
        """Read the entries of other writers."""
        async for chunk in read_chunks(self._store, self._next, await self._store.count()):
            self._learn(chunk)

    async def add(self, ordinal: int, row: bytes, attempts: int) -> None:
        """Add the result of a line. A later `commit` makes it durable.

        row: The row, without its line end.
        attempts: Number of requests sent for the line.
        """
        await self._has_room.wait()
        if ordinal in self._committed:
            # Another writer committed it while this writer's request was in flight.
            return
        self._rows[ordinal] = row
        self._attempts += attempts
        self._bytes += len(row)
        self._make_room()

    async def commit(self) -> None:
        """Write all added rows. After an error nothing is lost: call it again."""
        async with self._lock:
            while self._rows:
                chunk = Chunk(b"".join(row + b"\n" for row in self._rows.values()), self._attempts)
                self._tried.append(chunk)
                created = await self._store.create(self._next, chunk)
                self._learn(chunk if created else await self._store.read(self._next))

    def _learn(self, chunk: Chunk) -> None:
        """Process the next entry."""
        for row in chunk.rows:
            ordinal = self._identifier.ordinal(row)
            if self._committed.add(ordinal):
                self.tally.add(row)
            own = self._rows.pop(ordinal, b"")
            self._bytes -= len(own)
        # The entry may be this writer's own, if the response to its write was lost.
        if chunk in self._tried:
            self._attempts -= chunk.attempts
        self._tried.clear()
        self._next += 1
        self._make_room()

    def _make_room(self) -> None:
        if self._bytes < self._maximum:
            self._has_room.set()
        else:
            self._has_room.clear()


async def read_chunks(store: ChunkStore, first: int, end: int) -> AsyncIterator[Chunk]:
    """Yield entries in order. The next ones are already being read.

    first, end: First number, and the number after the last.
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
