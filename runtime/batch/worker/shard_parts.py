"""Finishes a turn of a shard: splits its log into three files and writes a summary."""

from __future__ import annotations

from batch.contracts.shard import ShardDone
from batch.worker.bucket_client import BucketClient, PartWriter
from batch.worker.chunk_log import ChunkStore, CorruptLogError, read_chunks
from batch.worker.ordinals import Ordinals
from batch.worker.rows import Part, RowIdentifier, Tally
from inference_contracts.batch_keys import ShardKeys


async def write_parts(
    bucket: BucketClient, keys: ShardKeys, store: ChunkStore, identifier: RowIdentifier, lines: int
) -> ShardDone:
    """Write the files of output, failed and expired lines. The summary goes last.

    A complete log never changes, so a repeated call writes the same.

    lines: Number of the turn's lines.
    Raises CorruptLogError if a line is in the log twice or not at all.
    """
    tally, attempts, seen = Tally(), 0, Ordinals()
    async with (
        bucket.written_in_parts(keys.output) as output,
        bucket.written_in_parts(keys.error) as error,
        bucket.written_in_parts(keys.expired) as expired,
    ):
        parts: dict[Part, PartWriter] = {"output": output, "error": error, "expired": expired}
        async for chunk in read_chunks(store, 0, await store.count()):
            attempts += chunk.attempts
            for row in chunk.rows:
                ordinal = identifier.ordinal(row)
                if not seen.add(ordinal):
                    raise CorruptLogError(f"{keys.chunks} has line {ordinal} twice")
                await parts[tally.add(row)].add(row + b"\n")
        if len(seen) != lines:
            raise CorruptLogError(f"{keys.chunks} has {len(seen)} of {lines} lines")
    done = tally.report(keys.shard, attempts=attempts)
    await bucket.write(keys.done, done.to_json().encode())
    return done
