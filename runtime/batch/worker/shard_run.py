"""Runs one shard, from its first line to its finished parts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import orjson

from batch.contracts.progress_items import ShardProgress
from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardDone, ShardLine, ShardMessage
from batch.worker.answer_images import AnswerImages, ShardImages
from batch.worker.bucket_client import BucketClient, MissingObjectError, PartWriter
from batch.worker.chunk_log import BucketChunks, ChunkLog, ChunkStore, CorruptLogError, Ordinals, read_chunks
from batch.worker.concurrency_limit import ConcurrencyLimit, Permit
from batch.worker.drain import Drain
from batch.worker.image_loader import Images
from batch.worker.line_run import LineRunner, Result, ShardTerms, expired
from batch.worker.model_endpoint import Requests
from batch.worker.retry_budget import MemoryBudget
from batch.worker.rows import ErrorCode, Part, RowIdentifier, Tally, error_row
from batch.worker.settings import WorkerSettings
from batch.worker.shard_reader import RawLine, ShardReader
from batch.worker.team_budget import AGAIN_SECONDS
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_contracts.batch_keys import JobKeys, ShardKeys
from inference_contracts.batch_limits import LINE_COPIES


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


#: The next shard is taken when this share of the newest one is left to read, so that the endpoint never
#: waits.
_NEXT_AT: Final = 0.25
#: Results that may wait for a commit, as a number of commits.
_COMMITS_WAITING: Final = 4
_CUSTOM_ID: Final = re.compile(rb'"custom_id":\s*("(?:[^"\\]|\\.)*")')


class InvalidJobError(Exception):
    """The description of a job cannot be used. The message names the reason."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Objects shared by all shards of the process."""

    settings: WorkerSettings
    """What the worker is told."""
    bucket: BucketClient
    runner: LineRunner
    memory: MemoryBudget
    """Limit on the bytes of open lines."""
    images: Images
    answer_images: AnswerImages
    door_model: str | None = None
    """Name of the model at the front door. None without one."""


@dataclass(slots=True, eq=False)
class ShardRun:
    """Work on one shard. If it is cancelled or killed, any worker can start it again."""

    message: ShardMessage
    shared: Shared
    order: int
    """Index among the process's shards."""
    on_nearly_read: Callable[[], None]
    """Called when it is time to take another shard."""
    _is_nearly_read: bool = field(default=False, init=False)
    _drain: Drain = field(default_factory=Drain, init=False)
    _done: ShardDone = field(init=False)
    """Result of the finished turns."""
    _terms: ShardTerms | None = field(default=None, init=False)
    _log: ChunkLog | None = field(default=None, init=False)
    """The log of the current turn, and the ordinals of its lines; None if it has all lines."""
    _wanted: Ordinals | None = field(default=None, init=False)
    _is_read: bool = field(default=False, init=False)
    _lines: int = field(default=0, init=False)
    _unstarted: dict[int, int] = field(default_factory=dict, init=False)
    """Bytes of lines whose task was cancelled before its first step. The task holds these bytes, and a
    permit."""
    _is_full: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._done = ShardDone(self.message.shard, 0, 0, 0)

    @property
    def progress(self) -> ShardProgress | None:
        """Progress of the shard; None until its job was read."""
        if self._terms is None:
            return None
        now = self._done
        if self._log is not None:
            now = now.followed_by(self._log.tally.report(self.message.shard, attempts=0))
        # Lines that expired in an earlier attempt run again, and have not ended yet.
        again = 0 if self._terms.is_over else now.expired
        return ShardProgress(
            self._terms.attempt, now.completed, now.failed - again, now.expired - again, now.usage
        )

    @property
    def rest_seconds(self) -> int:
        """Time for which the shard is better left alone if it is given back now: its team has no money."""
        budget = self._terms.budget if self._terms else None
        if budget is None or not budget.is_used_up:
            return 0
        return int(min(budget.seconds_left + 1, AGAIN_SECONDS))

    @property
    def is_nearly_read(self) -> bool:
        """Whether it is time to take another shard."""
        return self._is_nearly_read

    def drain(self) -> None:
        """Send no further line. `run` returns when the requests in flight have ended."""
        self._drain.begin()

    async def run(self) -> ShardDone | None:
        """Run every turn of the shard for which there is time.

        Returns: None if it was drained before the end.
        Raises InvalidJobError or MissingObjectError if the job or the shard cannot be read, now or later.
        """
        keys = JobKeys(self.message.job).shard(self.message.shard)
        self._terms = terms = await self._read_terms()
        while True:
            turn = await self._finished(keys) or await self._take_turn(keys, terms)
            if turn is None:
                return None
            self._done, self._log = self._done.followed_by(turn), None
            if not turn.expired or terms.is_over:
                return self._done
            self._wanted = await self._expired(keys, terms)
            keys = keys.next_turn

    async def _take_turn(self, keys: ShardKeys, terms: ShardTerms) -> ShardDone | None:
        """Request every line of a turn that has no result, and write the parts."""
        store = BucketChunks(self.shared.bucket, keys)
        flush_bytes = self.shared.settings.flush_bytes
        log = ChunkLog(store, terms.identifier, max_bytes=flush_bytes * _COMMITS_WAITING)
        await log.catch_up()
        self._log, self._is_read, self._lines = log, False, 0
        try:
            await self._ask(keys, terms, log)
        finally:
            # Also on cancellation: results that were paid for are kept.
            await log.commit()
        if not self._is_read or len(log.committed) < self._lines:
            return None
        return await write_parts(self.shared.bucket, keys, store, terms.identifier, self._lines)

    async def _finished(self, keys: ShardKeys) -> ShardDone | None:
        """Return the result of a turn; None if it is not done."""
        found = await self.shared.bucket.read(keys.done)
        return ShardDone.from_json(found.body) if found else None

    async def _expired(self, keys: ShardKeys, terms: ShardTerms) -> Ordinals:
        """Return the lines of a finished turn that expired at the deadline."""
        found = await self.shared.bucket.read(keys.expired)
        if found is None:
            raise MissingObjectError(f"{keys.expired} is not there")
        ordinals = Ordinals()
        for row in found.body.split(b"\n")[:-1]:
            ordinals.add(terms.identifier.ordinal(row))
        return ordinals

    async def _read_terms(self) -> ShardTerms:
        key = JobKeys(self.message.job).description
        found = await self.shared.bucket.read(key)
        if found is None:
            raise MissingObjectError(f"{key} is not there")
        try:
            description = JobDescription.from_json(found.body)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidJobError(f"{key}: {error}") from error
        # By S3's clock: this machine's clock may be wrong.
        left = description.deadline - found.served_at
        return ShardTerms(
            identifier=RowIdentifier(self.message.job, self.message.shard),
            requests=Requests(description, self.shared.images, self.shared.door_model),
            path=description.endpoint,
            deadline=asyncio.get_running_loop().time() + left,
            order=self.order,
            drain=self._drain,
            team=description.team,
            attempt=description.attempt,
            images=self._answer_images(description),
            budget=self.shared.runner.budgets[description.team],
        )

    def _answer_images(self, description: JobDescription) -> ShardImages | None:
        if description.endpoint != IMAGES_PATH:
            return None
        return self.shared.answer_images.of_shard(self.message.job, self.message.shard)

    async def _ask(self, keys: ShardKeys, terms: ShardTerms, log: ChunkLog) -> None:
        """Send the lines that are not in the log, until all have a result or the shard is drained."""
        settings = self.shared.settings
        reader = ShardReader(self.shared.bucket, keys.lines, line_bytes=settings.line_bytes)
        async with asyncio.TaskGroup() as commits:
            committing = commits.create_task(self._commit(log))
            try:
                async with asyncio.TaskGroup() as lines:
                    lines.create_task(self._begin_lines(reader, terms, log, lines))
            finally:
                self._nearly_read()
                committing.cancel()
                for size in self._unstarted.values():
                    self.shared.memory.give_back(size)
                    self.shared.runner.limit.ended()

    async def _begin_lines(
        self, reader: ShardReader, terms: ShardTerms, log: ChunkLog, group: asyncio.TaskGroup
    ) -> None:
        """Start each line as soon as the endpoint has capacity for it."""
        with self._drain.waits():
            async for lines in reader.batches():
                if reader.remaining <= _NEXT_AT:
                    self._nearly_read()
                for raw in lines:
                    if self._wanted is not None and raw.ordinal not in self._wanted:
                        continue
                    self._lines += 1
                    if raw.ordinal not in log.committed:
                        await self._begin(raw, terms, log, group)
        self._is_read = True

    def _nearly_read(self) -> None:
        if not self._is_nearly_read:
            self._is_nearly_read = True
            self.on_nearly_read()

    async def _begin(self, raw: RawLine, terms: ShardTerms, log: ChunkLog, group: asyncio.TaskGroup) -> None:
        try:
            line = _parse(raw)
        except _PoisonError as error:
            row = error_row(terms.identifier, raw.ordinal, error.custom_id, error.code, str(error))
            await self._keep(log, raw.ordinal, Result(row))
            return
        size = len(raw.content) * LINE_COPIES
        await self.shared.memory.take(size)
        limit = self.shared.runner.limit
        try:
            at_once = limit.acquire_now() if terms.budget.is_open else None
            permit = at_once or await _permit_before(terms, limit)
        except asyncio.CancelledError:
            self.shared.memory.give_back(size)
            raise
        if permit is None:
            self.shared.memory.give_back(size)
            await self._keep(log, raw.ordinal, expired(line, terms))
        else:
            self._unstarted[raw.ordinal] = size
            group.create_task(self._finish(line, terms, log, permit, size))

    async def _finish(
        self, line: ShardLine, terms: ShardTerms, log: ChunkLog, permit: Permit, size: int
    ) -> None:
        del self._unstarted[line.ordinal]
        try:
            result = await self.shared.runner.run(line, terms, permit)
        finally:
            self.shared.memory.give_back(size)
        await self._keep(log, line.ordinal, result)

    async def _keep(self, log: ChunkLog, ordinal: int, result: Result) -> None:
        await log.add(ordinal, result.row, result.attempts)
        self.shared.runner.metrics.rows += 1
        if log.waiting_bytes >= self.shared.settings.flush_bytes:
            self._is_full.set()

    async def _commit(self, log: ChunkLog) -> None:
        """Commit when enough results wait, or the first has waited long enough."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.shared.settings.flush_seconds):
                    await self._is_full.wait()
            self._is_full.clear()
            await log.commit()


async def _permit_before(terms: ShardTerms, limit: ConcurrencyLimit) -> Permit | None:
    """Wait for room in the team's budget, then for a permit; None if the deadline comes first."""
    try:
        async with asyncio.timeout_at(terms.deadline):
            await terms.budget.opened()
            return await limit.acquire(terms.order)
    except TimeoutError:
        return None


class _PoisonError(Exception):
    """No request can be made from a line."""

    def __init__(self, code: ErrorCode, message: str, custom_id: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.custom_id = custom_id


def _parse(raw: RawLine) -> ShardLine:
    if raw.too_long:
        raise _PoisonError(
            "line_too_long", "The line is longer than a worker accepts.", _custom_id(raw.content)
        )
    try:
        values = orjson.loads(raw.content)
        line = ShardLine(**{**values, "ordinal": raw.ordinal})
    except (orjson.JSONDecodeError, TypeError) as error:
        raise _PoisonError("invalid_line", "The line is not a request.", _custom_id(raw.content)) from error
    return line


def _custom_id(head: bytes) -> str | None:
    """Return the custom_id of a line that is too long. The field stands before the body."""
    found = _CUSTOM_ID.search(head)
    try:
        return str(orjson.loads(found[1])) if found else None
    except orjson.JSONDecodeError:
        return None
