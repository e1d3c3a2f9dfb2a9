"""Delivers usage records to a Firehose stream."""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from front_door.door_metrics import DoorMetrics
from inference_contracts.usage_record import UsageRecord

#: Limit of a call (Amazon Data Firehose API, PutRecordBatch).
_MOST_RECORDS: Final = 500
#: Records that wait at most: 100 MB. What comes then is counted as lost.
_MOST_WAITING: Final = 200_000
_PAUSE_SECONDS: Final = 0.2


class UsageDelivery:
    """The records that wait to be delivered.

    firehose: Client of Firehose. None: records are not delivered.
    """

    def __init__(self, firehose: Any | None, stream: str, metrics: DoorMetrics) -> None:
        self._firehose, self._stream, self._metrics = firehose, stream, metrics
        self._waiting: collections.deque[bytes] = collections.deque()

    def take(self, record: UsageRecord) -> None:
        """Take a record."""
        if self._firehose is None:
            return
        if len(self._waiting) >= _MOST_WAITING:
            self._metrics.count("records_lost")
            return
        self._waiting.append(record.to_json().encode() + b"\n")

    @property
    def waiting(self) -> int:
        """Number of records that wait."""
        return len(self._waiting)

    async def run(self) -> None:
        """Deliver, until it is cancelled."""
        while True:
            batch = [self._waiting.popleft() for _ in range(min(_MOST_RECORDS, len(self._waiting)))]
            if not batch:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            left = await asyncio.to_thread(self._put, batch)
            if left:
                self._waiting.extendleft(reversed(left))
                await asyncio.sleep(_PAUSE_SECONDS)

    def _put(self, batch: list[bytes]) -> list[bytes]:
        """Return what Firehose has not taken."""
        assert self._firehose  # noqa: S101 -- for the type checker
        try:
            answer = self._firehose.put_record_batch(
                DeliveryStreamName=self._stream, Records=[{"Data": each} for each in batch]
            )
        except (BotoCoreError, ClientError):
            return batch
        rows = zip(batch, answer["RequestResponses"], strict=True)
        return [record for record, row in rows if "ErrorCode" in row]
