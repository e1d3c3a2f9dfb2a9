"""Holds a message while its shard runs, and reports the result to the queue and to the task."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.progress_items import ShardProgress
from batch.contracts.shard import ShardDone, ShardMessage
from batch.worker.bucket_client import MissingObjectError, in_thread, is_condition_refused
from batch.worker.metrics import log
from batch.worker.queue import QueueMessage, ShardQueue
from batch.worker.shard_run import InvalidJobError, ShardRun

# Reports the progress of a shard. No shard waits for a report or fails because of one.


@dataclass(slots=True)
class ShardReports:
    """Progress reports of one shard."""

    client: Any
    """boto3's client of DynamoDB."""
    table: str | None
    """The table (`batch.contracts.progress_items`); None if nobody looks."""
    message: ShardMessage
    _last: ShardProgress | None = field(default=None, init=False)

    async def send(self, progress: ShardProgress | None) -> None:
        """Write the progress of the shard, unless it is unknown or already written."""
        if self.table is None or progress is None or progress == self._last:
            return
        job, shard = self.message.job, self.message.shard
        try:
            await in_thread(
                self.client.put_item,
                TableName=self.table,
                **progress.write(job, shard, now=time.time()),
            )
        except (BotoCoreError, ClientError) as error:
            if not is_condition_refused(error):
                log("progress_failed", job=job, shard=shard, reason=str(error))
                return
            # Another worker has the same shard and has made more progress.
        self._last = progress


# The job was cancelled, or the task belongs to another attempt now
# (https://docs.aws.amazon.com/step-functions/latest/apireference/API_SendTaskHeartbeat.html, Errors).
_GONE = frozenset({"InvalidToken", "TaskDoesNotExist", "TaskTimedOut"})
_LONGEST_CAUSE = 32_768


class TaskGoneError(Exception):
    """The task no longer waits."""


class ShardTask:
    """The task of one shard.

    client: boto3's client of Step Functions.
    """

    def __init__(self, client: Any, token: str) -> None:
        self._client = client
        self._token = token

    async def heartbeat(self) -> None:
        """Report that the shard is in work. Raises TaskGoneError if the task no longer waits."""
        await self._send(self._client.send_task_heartbeat)

    async def succeed(self, done: ShardDone) -> None:
        """Report that the shard is done.

        done: Result of the shard.
        Raises TaskGoneError if the task no longer waits.
        """
        await self._send(self._client.send_task_success, output=done.to_json())

    async def fail(self, error: str, cause: str) -> None:
        """Report that the shard cannot be done.

        error, cause: Error code, and description.
        Raises TaskGoneError if the task no longer waits.
        """
        await self._send(self._client.send_task_failure, error=error, cause=cause[:_LONGEST_CAUSE])

    async def _send(self, call: Any, **options: Any) -> None:
        try:
            await in_thread(call, taskToken=self._token, **options)
        except ClientError as error:
            if error.response["Error"]["Code"].rpartition("#")[2] in _GONE:
                raise TaskGoneError from error
            raise


#: Least and most time after which another worker may retry a shard that AWS did not let this worker finish.
#: The batch bucket is the platform's own: whatever S3 answers there but that the shard is missing may pass,
#: also a denial while a deployment changes a policy.
_AGAIN_SECONDS: Final = (15, 45)
PERMANENT_ERRORS: Final = (InvalidJobError, MissingObjectError)
_AWS: Final = (BotoCoreError, ClientError)


@dataclass(slots=True)
class ShardHolder:
    """Work on one message."""

    message: QueueMessage
    """The received message."""
    queue: ShardQueue
    task: ShardTask
    """The task that waits for the result."""
    run: ShardRun
    reports: ShardReports
    """Progress reports of the shard."""
    heartbeat_seconds: float
    """Time between two heartbeats."""
    hold_seconds: float
    """Time after which the message is given back although the shard is not done."""

    async def hold(self) -> None:
        """Work on the shard until it is done, given back or taken away.

        The message survives every error: it is deleted only after the task was told of the end, or when the
        task no longer waits.
        """
        try:
            await self._end(await self._work())
        except asyncio.CancelledError:
            await self._give_back("drained", 0)
            raise
        except BaseExceptionGroup as group:
            await self._fail(group)

    async def _work(self) -> ShardDone | None:
        """Run the shard, and stop if its task no longer waits."""
        async with asyncio.TaskGroup() as group:
            await self.task.heartbeat()
            beating = group.create_task(self._beat())
            letting_go = asyncio.get_running_loop().call_later(self.hold_seconds, self._let_go)
            try:
                return await self.run.run()
            finally:
                letting_go.cancel()
                beating.cancel()

    def _let_go(self) -> None:
        """Stop sending and give the message back, before the longest visibility time ends.

        The next holder continues the shard.
        """
        self._log("hold_ended")
        self.run.drain()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_seconds)
            try:
                await self.queue.extend(self.message)
                await self.task.heartbeat()
            except _AWS as error:
                # The next heartbeat may succeed. If none does, another worker gets the shard.
                self._log("heartbeat_failed", reason=str(error))
            await self.reports.send(self.run.progress)

    async def _end(self, done: ShardDone | None) -> None:
        if done is None:
            rest = self.run.rest_seconds
            await self._give_back("the team's budget is used up" if rest else "drained", rest)
            return
        await self.reports.send(self.run.progress)
        try:
            await self.task.succeed(done)
        except TaskGoneError:
            self._log("task_gone")
        except _AWS as error:
            # Another worker that gets the shard will find that it is done.
            await self._give_back(str(error), _again_seconds())
            return
        await self._delete()
        self.run.shared.runner.metrics.shards += 1
        self._log("shard_done", completed=done.completed, failed=done.failed, attempts=done.attempts)

    async def _fail(self, group: BaseExceptionGroup[BaseException]) -> None:
        """Handle the error that ended the work. An unknown error ends the process."""
        if group.split(TaskGoneError)[0]:
            self._log("task_gone")
            await self._delete()
        elif no_use := group.split(PERMANENT_ERRORS)[0]:
            cause = _first(no_use)
            self._log("shard_failed", reason=str(cause))
            with suppress(TaskGoneError):
                await self.task.fail(type(cause).__name__, str(cause))
            await self._delete()
        elif refused := group.split(_AWS)[0]:
            await self._give_back(str(_first(refused)), _again_seconds())
        else:
            await self._give_back("unexpected error", 0)
            raise group

    async def _give_back(self, reason: str, after_seconds: int) -> None:
        self._log("shard_given_back", reason=reason)
        try:
            await self.queue.give_back(self.message, after_seconds)
        except _AWS as error:
            # The message becomes visible again by itself, somewhat later.
            self._log("queue_failed", reason=str(error))

    async def _delete(self) -> None:
        try:
            await self.queue.delete(self.message)
        except _AWS as error:
            # The message becomes visible again, and its next holder finds nothing left to do.
            self._log("queue_failed", reason=str(error))

    def _log(self, event: str, **values: Any) -> None:
        message = self.run.message
        log(event, job=message.job, shard=message.shard, received=self.message.received, **values)


def _again_seconds() -> int:
    """Return a random time, so that shards of one outage do not come back at once."""
    return random.randint(*_AGAIN_SECONDS)  # noqa: S311 - no secret


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of nested exception groups."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
