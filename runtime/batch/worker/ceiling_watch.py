"""Narrows the worker's limit while the capacity shift gives its model fewer places than shards are running.

The scheduler starts no further shards then, but those that run would keep all of their requests in flight
until they end. So each worker reads the ceiling itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.progress_items import places_under
from batch.worker.bucket_client import in_thread
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.metrics import log
from batch.worker.queue import ShardQueue
from inference_contracts.batch_names import ID_ATTRIBUTE
from inference_contracts.shift_names import ceiling_identifier

#: Time between two readings. The shift writes a ceiling each minute.
LOOK_SECONDS: Final = 15.0


@dataclass(slots=True)
class CeilingWatch:
    """Reads the ceiling of a model.

    Until the first reading the ceiling is unknown, which counts as 0.
    """

    client: Any
    """boto3's client of DynamoDB."""
    table: str
    """Table of batch's records."""
    model: str
    """Its name."""
    queue: ShardQueue
    """The model's queue, which knows how many shards all workers hold."""
    limit: ConcurrencyLimit
    """What is narrowed."""
    _ceiling: Mapping[str, Any] | None = None
    _running: int = 1
    _share: float = field(default=1.0, init=False)

    async def run(self) -> None:
        """Look again and again."""
        self._narrow()
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Read the ceiling, and narrow the limit.

        If AWS does not answer, the last reading counts until it is old.
        """
        try:
            answer = await in_thread(
                self.client.get_item,
                TableName=self.table,
                Key={ID_ATTRIBUTE: {"S": ceiling_identifier(self.model)}},
                ConsistentRead=True,
            )
            self._running = max(1, await self.queue.held())
        except (BotoCoreError, ClientError) as error:
            log("ceiling_unread", model=self.model, reason=str(error))
        else:
            item = answer.get("Item")
            self._ceiling = None if item is None else TypeDeserializer().deserialize(item["record"])
        self._narrow()

    def _narrow(self) -> None:
        share = min(1.0, places_under(self._ceiling, now=time.time()) / self._running)
        if share != self._share:
            log("narrowed", model=self.model, share=round(share, 3), running=self._running)
            self._share = share
            self.limit.narrow(share)
