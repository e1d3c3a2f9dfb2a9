"""Receives and deletes messages of the model's queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from batch.worker.bucket_client import in_thread

_HELD = "ApproximateNumberOfMessagesNotVisible"
# The message was deleted, or another worker holds it now. Nothing remains to be reported.
_NOT_OURS = frozenset({"InvalidParameterValue", "ReceiptHandleIsInvalid", "MessageNotInflight"})


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message that this worker holds."""

    body: str
    receipt: str
    """Handle to extend, delete or give back the message."""
    received: int
    """Number of times the message was received, including this time."""


class ShardQueue:
    """The queue of a model.

    client: boto3's client of SQS.
    visibility_seconds: Time for which a message is hidden from others.
    poll_seconds: Longest time that one poll waits for a message.
    """

    def __init__(self, client: Any, url: str, *, visibility_seconds: int, poll_seconds: int) -> None:
        self._client = client
        self._url = url
        self._visibility = visibility_seconds
        self._poll = poll_seconds

    async def receive(self) -> QueueMessage | None:
        """Return a message; None if none arrived during the poll."""
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

    async def held(self) -> int:
        """Return the number of messages that all workers of the model hold.

        It is approximate, and settles within a minute
        (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html).
        """
        answer = await in_thread(
            self._client.get_queue_attributes, QueueUrl=self._url, AttributeNames=[_HELD]
        )
        return int(answer["Attributes"][_HELD])

    async def extend(self, message: QueueMessage) -> None:
        """Hide a message from others for another visibility time."""
        await self._hide(message, self._visibility)

    async def give_back(self, message: QueueMessage, after_seconds: int = 0) -> None:
        """Make a message visible to others at once."""
        await self._hide(message, after_seconds)

    async def delete(self, message: QueueMessage) -> None:
        await self._of_ours(self._client.delete_message, message)

    async def _hide(self, message: QueueMessage, seconds: int) -> None:
        await self._of_ours(self._client.change_message_visibility, message, VisibilityTimeout=seconds)

    async def _of_ours(self, call: Any, message: QueueMessage, **options: Any) -> None:
        try:
            await in_thread(call, QueueUrl=self._url, ReceiptHandle=message.receipt, **options)
        except ClientError as error:
            if error.response["Error"]["Code"].rpartition(".")[2] not in _NOT_OURS:
                raise
