"""Says how far a shard is, for those who look at its job; no shard waits for it or fails by it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.progress import ShardProgress
from batch.contracts.shard import ShardMessage
from batch.worker.clients import in_thread
from batch.worker.metrics import log


@dataclass(slots=True)
class ShardReports:
    """Reports of one shard.

    Parameters
    ----------
    client
        boto3's client of DynamoDB.
    table
        The table (`batch.contracts.progress`); None where nobody looks.
    message
        Which shard.
    """

    client: Any
    table: str | None
    message: ShardMessage
    _last: ShardProgress | None = field(default=None, init=False)

    async def send(self, progress: ShardProgress | None) -> None:
        """Write how far the shard is, unless that was written already or is not known yet.

        Parameters
        ----------
        progress
            How far.
        """
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
            if not _is_refused(error):
                log("progress_failed", job=job, shard=shard, reason=str(error))
                return
            # Another worker has the same shard and is further with it.
        self._last = progress


def _is_refused(error: BotoCoreError | ClientError) -> bool:
    """Return whether what stands there is as late or later."""
    return (
        isinstance(error, ClientError)
        and error.response["Error"]["Code"] == "ConditionalCheckFailedException"
    )
