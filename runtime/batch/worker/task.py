"""A shard's task in Step Functions, which waits to be told of progress and the end."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from batch.contracts.shard import ShardDone
from batch.worker.clients import in_thread

# The job was cancelled, or the task was given to another attempt
# (https://docs.aws.amazon.com/step-functions/latest/apireference/API_SendTaskHeartbeat.html, Errors).
_GONE = frozenset({"InvalidToken", "TaskDoesNotExist", "TaskTimedOut"})
_LONGEST_CAUSE = 32_768


class TaskGoneError(Exception):
    """Nobody waits for the task any more."""


class ShardTask:
    """One task.

    Parameters
    ----------
    client
        boto3's client of Step Functions.
    token
        The task's.
    """

    def __init__(self, client: Any, token: str) -> None:
        self._client = client
        self._token = token

    async def heartbeat(self) -> None:
        """Say that the shard is worked on.

        Raises
        ------
        TaskGoneError
            If nobody waits for it.
        """
        await self._send(self._client.send_task_heartbeat)

    async def succeed(self, done: ShardDone) -> None:
        """Say that the shard is done.

        Parameters
        ----------
        done
            What became of it.

        Raises
        ------
        TaskGoneError
            If nobody waits for it.
        """
        await self._send(self._client.send_task_success, output=done.to_json())

    async def fail(self, error: str, cause: str) -> None:
        """Say that the shard cannot be done.

        Parameters
        ----------
        error, cause
            Why, in a word and in words.

        Raises
        ------
        TaskGoneError
            If nobody waits for it.
        """
        await self._send(self._client.send_task_failure, error=error, cause=cause[:_LONGEST_CAUSE])

    async def _send(self, call: Any, **options: Any) -> None:
        try:
            await in_thread(call, taskToken=self._token, **options)
        except ClientError as error:
            if error.response["Error"]["Code"].rpartition("#")[2] in _GONE:
                raise TaskGoneError from error
            raise
