"""The end of a shard: its log as two files, and what became of it."""

from __future__ import annotations

from batch.contracts.keys import ShardKeys
from batch.contracts.shard import ShardDone
from batch.worker.bucket import Bucket
from batch.worker.chunk_log import ChunkStore, CorruptLogError, read_chunks
from batch.worker.ordinals import Ordinals
from batch.worker.rows import RowIdentifier, Tally


async def write_parts(
    bucket: Bucket, keys: ShardKeys, store: ChunkStore, identifier: RowIdentifier, lines: int
) -> ShardDone:
    """Write the output, the error file and, last, that they are done.

    A log that is complete never changes, so whoever does this again writes the same.

    Parameters
    ----------
    bucket
        The batch bucket.
    keys
        The shard's keys.
    store
        Its log.
    identifier
        Reads rows' identifiers.
    lines
        Lines that the shard has.

    Raises
    ------
    CorruptLogError
        If a line is in the log twice or not at all.
    """
    tally, attempts, seen = Tally(), 0, Ordinals()
    async with (
        bucket.written_in_parts(keys.output) as output,
        bucket.written_in_parts(keys.error) as error,
    ):
        async for chunk in read_chunks(store, 0, await store.count()):
            attempts += chunk.attempts
            for row in chunk.rows:
                ordinal = identifier.ordinal(row)
                if not seen.add(ordinal):
                    raise CorruptLogError(f"{keys.chunks} has line {ordinal} twice")
                await (output if tally.add(row) else error).add(row + b"\n")
        if len(seen) != lines:
            raise CorruptLogError(f"{keys.chunks} has {len(seen)} of {lines} lines")
    done = ShardDone(keys.shard, tally.completed, lines - tally.completed, attempts, tally.usage)
    await bucket.write(keys.done, done.to_json().encode())
    return done
