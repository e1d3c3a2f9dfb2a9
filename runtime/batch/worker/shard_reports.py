"""Reports the progress of a shard. No shard waits for a report or fails because of one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.progress_items import ShardProgress
from batch.contracts.shard import ShardMessage
from batch.worker.clients import in_thread, is_condition_refused
from batch.worker.metrics import log


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
