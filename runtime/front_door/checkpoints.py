"""Copies of the counters in DynamoDB, with which a store that has lost its data is filled.

The first of the live replicas writes what has changed: counters with limits every few seconds, others every
minute. Spending only grows, so a write has the condition that it is more than what is there, and copies from
two replicas, or from a store that has lost some of its data, do no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from front_door.ledger_counters import Budgets, changed_key
from front_door.replicas import Replicas
from front_door.store import LedgerStore, StoreLostError
from front_door.trouble import Trouble
from inference_contracts import door_names
from inference_contracts.door_ledger import CHECKPOINT_SECONDS_KEPT, NUMBERS

#: Time between two checkpoints: what is spent in it is the most that an empty store forgets.
CHECKPOINT_SECONDS: Final = 2.0
_UNLIMITED_SECONDS: Final = 60.0
_MOST_AT_ONCE: Final = 500
_WRITES_AT_ONCE: Final = 16


class Checkpoints:
    """The table of the checkpoints.

    client: Client of DynamoDB.
    name: Name of the table.
    budgets: Returns the budgets of today's configuration.
    is_limited: Returns whether the counter of a key in the store has limits.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        *,
        store: LedgerStore,
        replicas: Replicas,
        budgets: Callable[[], Budgets],
        is_limited: Callable[[str], bool],
    ) -> None:
        self._client, self._name = client, name
        self._store, self._replicas = store, replicas
        self._budgets, self._is_limited = budgets, is_limited
        self._waiting: dict[str, tuple[str, float]] = {}
        self._done_at = time.monotonic()

    @property
    def age_seconds(self) -> float:
        """Time since all that had changed was written, by this replica. 0 if another one writes."""
        return time.monotonic() - self._done_at if self._replicas.is_first else 0.0

    async def run(self) -> None:
        """Write checkpoints, until it is cancelled."""
        trouble = Trouble("checkpoint not written")
        while True:
            try:
                if self._replicas.is_first:
                    await self.write()
                else:
                    await self._give_back()
                self._done_at = time.monotonic()
                trouble.is_over()
            except (StoreLostError, BotoCoreError, ClientError) as error:
                trouble.report(error)
            await asyncio.sleep(CHECKPOINT_SECONDS)

    async def write(self) -> None:
        """Write what has changed. Raises StoreLostError, BotoCoreError or ClientError."""
        for tag in self._budgets().tags:
            while keys := await self._store.ask(tag, "SPOP", changed_key(tag), _MOST_AT_ONCE):
                now = time.monotonic()
                for each in keys:
                    self._waiting.setdefault(each.decode(), (tag, now))
        due = self._due(time.monotonic())
        for first in range(0, len(due), _WRITES_AT_ONCE):
            await asyncio.gather(*map(self._write, due[first : first + _WRITES_AT_ONCE]))

    async def _write(self, key: str) -> None:
        tag, _ = self._waiting[key]
        numbers = await self._store.ask(tag, "HMGET", key, *NUMBERS)
        await asyncio.to_thread(self._put, tag, key, [int(each or 0) for each in numbers])
        del self._waiting[key]

    async def _give_back(self) -> None:
        """Leave what is not written to the replica that is the first one now."""
        for key, (tag, _) in [*self._waiting.items()]:
            await self._store.ask(tag, "SADD", changed_key(tag), key)
            del self._waiting[key]

    async def read(self, tag: str) -> Mapping[str, Sequence[int]]:
        """Return the counters of a tag. Raises StoreLostError if the table does not answer."""
        try:
            return await asyncio.to_thread(self._read, tag)
        except (BotoCoreError, ClientError) as error:
            raise StoreLostError(f"the checkpoint cannot be read: {error}") from error

    def _due(self, now: float) -> list[str]:
        return [
            key
            for key, (_, since) in self._waiting.items()
            if now - since >= _UNLIMITED_SECONDS or self._is_limited(key)
        ]

    def _read(self, tag: str) -> dict[str, list[int]]:
        asked: dict[str, Any] = {
            "TableName": self._name,
            "KeyConditionExpression": "#tag = :tag",
            "ExpressionAttributeNames": {"#tag": door_names.SLOT_ATTRIBUTE},
            "ExpressionAttributeValues": {":tag": {"S": tag}},
            "ConsistentRead": True,
        }
        found: dict[str, list[int]] = {}
        while True:
            page = self._client.query(**asked)
            for item in page["Items"]:
                numbers = [int(item[name]["N"]) for name in NUMBERS]
                found[item[door_names.ACCOUNT_ATTRIBUTE]["S"]] = numbers
            if "LastEvaluatedKey" not in page:
                return found
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _put(self, tag: str, key: str, numbers: Sequence[int]) -> None:
        """Write a counter if it has spent more than what is there."""
        item = {
            door_names.SLOT_ATTRIBUTE: {"S": tag},
            door_names.ACCOUNT_ATTRIBUTE: {"S": key},
            door_names.CHECKPOINT_EXPIRY_ATTRIBUTE: {"N": str(int(time.time()) + CHECKPOINT_SECONDS_KEPT)},
            **{name: {"N": str(number)} for name, number in zip(NUMBERS, numbers, strict=True)},
        }
        compared = {f":{name}": item[name] for name in _NAMES.values()}
        with contextlib.suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.put_item(
                TableName=self._name,
                Item=item,
                ConditionExpression=_IS_MORE,
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues=compared,
            )


# Months come in their order, and what is spent in one only grows; then that of the month before.
_NAMES: Final = {"#month": "m", "#spent": "M", "#before": "P"}
_IS_MORE: Final = (
    "attribute_not_exists(#month) OR #month < :m OR (#month = :m AND #spent < :M) "
    "OR (#month = :m AND #spent = :M AND #before < :P)"
)
