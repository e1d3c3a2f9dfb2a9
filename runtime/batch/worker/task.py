"""The Step Functions task of a shard, which waits for heartbeats and the result."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from batch.contracts.shard import ShardDone
from batch.worker.clients import in_thread

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
