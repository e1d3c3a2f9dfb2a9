"""Messages of the model's queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from batch.worker.clients import in_thread

# The message was deleted, or is another worker's by now: nothing is left to say of it.
_NOT_OURS = frozenset({"InvalidParameterValue", "ReceiptHandleIsInvalid", "MessageNotInflight"})


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message that this worker holds.

    Parameters
    ----------
    body
        What it says.
    receipt
        By which it is extended, deleted or given back.
    received
        How often it was received, this time included.
    """

    body: str
    receipt: str
    received: int


class ShardQueue:
    """One queue.

    Parameters
    ----------
    client
        boto3's client of SQS.
    url
        The queue.
    visibility_seconds
        Time for which a message is hidden from others.
    poll_seconds
        Time that one look waits for a message.
    """

    def __init__(self, client: Any, url: str, *, visibility_seconds: int, poll_seconds: int) -> None:
        self._client = client
        self._url = url
        self._visibility = visibility_seconds
        self._poll = poll_seconds

    async def receive(self) -> QueueMessage | None:
        """Return a message, or None if none came while the poll lasted."""
        answer = await in_thread(
            self._client.receive_message,
            QueueUrl=self._url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=self._poll,
            VisibilityTimeout=self._visibility,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        for message in answer.get("Messages", []):
            received = int(message["Attributes"]["ApproximateReceiveCount"])
            return QueueMessage(message["Body"], message["ReceiptHandle"], received)
        return None

    async def extend(self, message: QueueMessage) -> None:
        """Hide a message from others for another while.

        Parameters
        ----------
        message
            Of `receive`.
        """
        await self._hide(message, self._visibility)

    async def give_back(self, message: QueueMessage, after_seconds: int = 0) -> None:
        """Let others have a message.

        Parameters
        ----------
        message
            Of `receive`.
        after_seconds
            When.
        """
        await self._hide(message, after_seconds)

    async def delete(self, message: QueueMessage) -> None:
        """Let nobody have a message again.

        Parameters
        ----------
        message
            Of `receive`.
        """
        await self._of_ours(self._client.delete_message, message)

    async def _hide(self, message: QueueMessage, seconds: int) -> None:
        await self._of_ours(self._client.change_message_visibility, message, VisibilityTimeout=seconds)

    async def _of_ours(self, call: Any, message: QueueMessage, **options: Any) -> None:
        try:
            await in_thread(call, QueueUrl=self._url, ReceiptHandle=message.receipt, **options)
        except ClientError as error:
            if error.response["Error"]["Code"].rpartition(".")[2] not in _NOT_OURS:
                raise
