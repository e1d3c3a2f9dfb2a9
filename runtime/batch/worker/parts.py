"""The end of a shard: its log as two files, and what became of it."""

from __future__ import annotations

from batch.contracts.keys import ShardKeys
from batch.contracts.shard import ShardDone, Usage
from batch.worker.bucket import Bucket
from batch.worker.chunk_log import ChunkStore, CorruptLogError, read_chunks
from batch.worker.ordinals import Ordinals
from batch.worker.rows import RowIdentifier, summarise


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
    completed, attempts, usage, seen = 0, 0, Usage(), Ordinals()
    async with (
        bucket.written_in_parts(keys.output) as output,
        bucket.written_in_parts(keys.error) as error,
    ):
        async for chunk in read_chunks(store, 0, await store.count()):
            attempts += chunk.attempts
            for row in chunk.rows:
                ordinal, summary = identifier.ordinal(row), summarise(row)
                if ordinal in seen:
                    raise CorruptLogError(f"{keys.chunks} has line {ordinal} twice")
                seen.add(ordinal)
                completed += summary.succeeded
                usage += summary.usage
                await (output if summary.succeeded else error).add(row + b"\n")
        if len(seen) != lines:
            raise CorruptLogError(f"{keys.chunks} has {len(seen)} of {lines} lines")
    done = ShardDone(keys.shard, completed, lines - completed, attempts, usage)
    await bucket.write(keys.done, done.to_json().encode())
    return done
