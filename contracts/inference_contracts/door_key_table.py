"""The table of API keys in DynamoDB: its attributes, and how records are written and read.

Keys are spread over `BUCKETS` item collections by a hash of their identifier. In each bucket, a counter and a
record are written in one transaction, so that every change has the next number, whatever the clocks of the
writers say. A reader asks the local secondary index of a bucket for the numbers that it has not seen. Only
local indexes answer with strong consistency (Amazon DynamoDB Developer Guide, "DynamoDB read consistency").

A query may see one transaction's record before it sees that of an earlier one, because queries are
read-committed and not serializable ("Amazon DynamoDB transactions: How it works", "Isolation levels"). So
readers ask again for the last `OVERLAP` numbers, and `changes_after` does it for them.
"""

from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Protocol

from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_keys import KeyRecord

#: Partition key: the number of the bucket, as text.
BUCKET_ATTRIBUTE: Final = "bucket"
#: Sort key: the identifier of the key. That of a bucket's counter is `COUNTER`.
ID_ATTRIBUTE: Final = "id"
#: The record as a JSON document. Counters have none.
RECORD_ATTRIBUTE: Final = "record"
#: Local secondary index of all attributes, sorted by `CHANGE_ATTRIBUTE`.
CHANGE_INDEX: Final = "byChange"
#: Number of the last change. Counters have it under `LAST_ATTRIBUTE`, which keeps them out of the index.
CHANGE_ATTRIBUTE: Final = "change"
LAST_ATTRIBUTE: Final = "last"
#: Time at which DynamoDB deletes an item, in seconds since 1970.
EXPIRY_ATTRIBUTE: Final = "removed"

#: Outputs of the stack of the front door: the name of the table, the name of the bucket with the record of
#: administration, and the base URL of the API of keys.
TABLE_OUTPUT: Final = "DoorKeyTable"
AUDIT_BUCKET_OUTPUT: Final = "DoorAuditBucket"
API_OUTPUT: Final = "DoorKeysApiAddress"

#: Buckets. An item collection of a table with a local index has at most 10 GB (Amazon DynamoDB Developer
#: Guide, "Local secondary indexes"): room for millions of keys each.
BUCKETS: Final = 8
#: Sort key of a counter. No identifier of a key has this character.
COUNTER: Final = "#"
#: Numbers before the last one seen that a reader asks for again.
OVERLAP: Final = 64
#: Time after its end for which the item of a key is kept. The record of administration keeps what was done.
_KEPT_SECONDS: Final = 90 * 24 * 3600
#: Attempts of a write that another write in the same bucket was faster than.
_ATTEMPTS: Final = 10
#: Seconds before the second attempt at most, and before any.
_PAUSE, _LONGEST_PAUSE = 0.01, 0.5
_FIELDS: Final = tuple(field.name for field in fields(KeyRecord))
_BUDGET_FIELDS: Final = frozenset(field.name for field in fields(DoorBudget))


class ChangedMeanwhileError(Exception):
    """Somebody else has changed the key since it was read, or has made one with its identifier."""


class UnreadableKeyError(Exception):
    """The table has an item of a key that is no record. The message names the key."""


@dataclass(frozen=True, slots=True)
class UnreadableKey:
    """An item of the table that is no record of a key."""

    id: str
    change: int
    reason: str


class BusyTableError(Exception):
    """Too many other changes were written at the same time. Nothing was changed."""


class DynamoDb(Protocol):
    """The calls of boto3's client of DynamoDB that a table of keys needs."""

    def get_item(self, **values: Any) -> Any:
        """Read an item."""

    def batch_get_item(self, **values: Any) -> Any:
        """Read items by their keys."""

    def query(self, **values: Any) -> Any:
        """Read items of a partition."""

    def transact_write_items(self, **values: Any) -> Any:
        """Write all items or none."""


def bucket_of(key_id: str) -> str:
    """Return the bucket of a key.

    key_id: Identifier of the key.
    """
    return str(zlib.crc32(key_id.encode()) % BUCKETS)


def buckets() -> tuple[str, ...]:
    """Return all buckets."""
    return tuple(map(str, range(BUCKETS)))


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The records of API keys."""

    client: DynamoDb
    """boto3's client of DynamoDB."""
    name: str
    """Name of the table."""
    pause: Callable[[float], object] = time.sleep
    """Waits for some seconds before a write is tried again."""

    def get(self, key_id: str) -> KeyRecord | None:
        """Return the record of a key. None if there is no such key.

        key_id: Identifier of the key.
        """
        item = self._item(bucket_of(key_id), key_id)
        return _read(item) if RECORD_ATTRIBUTE in item else None

    def all(self) -> Iterator[KeyRecord]:
        """Yield all records, also those of expired and revoked keys."""
        for bucket in buckets():
            yield from self.changes_after(bucket, 0)

    def last_changes(self) -> Mapping[str, int]:
        """Return the number of the last change of each bucket, 0 if there is none.

        It is one call for all buckets. A bucket that DynamoDB had no capacity for is missing
        (``UnprocessedKeys``, Amazon DynamoDB API Reference, "BatchGetItem").
        """
        keys = [{BUCKET_ATTRIBUTE: {"S": each}, ID_ATTRIBUTE: {"S": COUNTER}} for each in buckets()]
        asked = {self.name: {"Keys": keys, "ConsistentRead": True}}
        answer = self.client.batch_get_item(RequestItems=asked)
        left = {
            key[BUCKET_ATTRIBUTE]["S"]
            for key in answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", ())
        }
        found = {
            item[BUCKET_ATTRIBUTE]["S"]: int(item[LAST_ATTRIBUTE]["N"])
            for item in answer["Responses"].get(self.name, ())
        }
        return {each: found.get(each, 0) for each in buckets() if each not in left}

    def changes_after(self, bucket: str, change: int) -> Iterator[KeyRecord]:
        """Yield the records of a bucket that have changed, in the order of their last changes.

        bucket: One of `buckets`.
        change: Highest number that was seen. The records of the last `OVERLAP` numbers up to it follow again.
        Raises UnreadableKeyError.
        """
        for entry in self.entries_after(bucket, change):
            if isinstance(entry, UnreadableKey):
                raise UnreadableKeyError(
                    f"table {self.name}: the item with bucket {bucket} and id {entry.id!r} is no key "
                    f"({entry.reason}); delete the item, and make the key anew"
                )
            yield entry

    def entries_after(self, bucket: str, change: int) -> Iterator[KeyRecord | UnreadableKey]:
        """Yield what `changes_after` yields, and items that are no records in their place."""
        asked: dict[str, Any] = {
            "TableName": self.name,
            "IndexName": CHANGE_INDEX,
            "ConsistentRead": True,
            "KeyConditionExpression": "#bucket = :bucket AND #change > :change",
            # `bucket` is a reserved word (Amazon DynamoDB Developer Guide, "Reserved words").
            "ExpressionAttributeNames": {
                "#bucket": BUCKET_ATTRIBUTE,
                "#change": CHANGE_ATTRIBUTE,
                "#record": RECORD_ATTRIBUTE,
                "#id": ID_ATTRIBUTE,
            },
            "ExpressionAttributeValues": {
                ":bucket": {"S": bucket},
                ":change": {"N": str(max(0, change - OVERLAP))},
            },
            "ProjectionExpression": "#record, #id, #change",
        }
        while True:
            page = self.client.query(**asked)
            yield from map(_entry, page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def put(self, record: KeyRecord, *, before: KeyRecord | None) -> KeyRecord:
        """Write a record, and return it with the number of the change.

        A repeated call of the client does nothing twice: boto3 sends a token with each transaction (Amazon
        DynamoDB Developer Guide, "Idempotency").

        record: The record. Its number is not read.
        before: The record as it was read. None for a new key.
        Raises ChangedMeanwhileError if the table has another record of the key than `before`, and
            BusyTableError if other writes were always faster. In both cases nothing was written.
        """
        bucket = bucket_of(record.id)
        for attempt in range(_ATTEMPTS):
            if attempt:
                # Writers that wait for different times meet less often.
                self.pause(random.uniform(0, min(_LONGEST_PAUSE, _PAUSE * 2**attempt)))  # noqa: S311
            last = int(self._item(bucket, COUNTER).get(LAST_ATTRIBUTE, {"N": "0"})["N"])
            written = replace(record, change=last + 1)
            reasons = self._write(bucket, last, written, before)
            if not reasons:
                return written
            if reasons[1] == "ConditionalCheckFailed":
                raise ChangedMeanwhileError(record.id)
        raise BusyTableError(self.name)

    def _item(self, bucket: str, identifier: str) -> Mapping[str, Any]:
        """Return an item; empty if there is none."""
        key = {BUCKET_ATTRIBUTE: {"S": bucket}, ID_ATTRIBUTE: {"S": identifier}}
        found = self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True)
        item: Mapping[str, Any] = found.get("Item", {})
        return item

    def _write(self, bucket: str, last: int, written: KeyRecord, before: KeyRecord | None) -> tuple[str, ...]:
        """Write counter and record. Return why DynamoDB refused each of them; nothing if it wrote them."""
        try:
            self.client.transact_write_items(
                TransactItems=[
                    {"Update": self._counting(bucket, last)},
                    {"Put": self._putting(bucket, written, before)},
                ]
            )
        except Exception as error:
            reasons = getattr(error, "response", {}).get("CancellationReasons")
            if reasons is None:
                raise
            codes = tuple(str(reason.get("Code")) for reason in reasons)
            if not {*codes} & {"ConditionalCheckFailed", "TransactionConflict"}:
                raise
            return codes
        return ()

    def _counting(self, bucket: str, last: int) -> dict[str, Any]:
        return {
            "TableName": self.name,
            "Key": {BUCKET_ATTRIBUTE: {"S": bucket}, ID_ATTRIBUTE: {"S": COUNTER}},
            "UpdateExpression": "SET #last = :next",
            "ConditionExpression": "#last = :last" if last else "attribute_not_exists(#last)",
            "ExpressionAttributeNames": {"#last": LAST_ATTRIBUTE},
            "ExpressionAttributeValues": {
                ":next": {"N": str(last + 1)},
                **({":last": {"N": str(last)}} if last else {}),
            },
        }

    def _putting(self, bucket: str, written: KeyRecord, before: KeyRecord | None) -> dict[str, Any]:
        condition: dict[str, Any]
        if before is None:
            condition = {
                "ConditionExpression": "attribute_not_exists(#id)",
                "ExpressionAttributeNames": {"#id": ID_ATTRIBUTE},
            }
        else:
            condition = {
                "ConditionExpression": "#change = :before",
                "ExpressionAttributeNames": {"#change": CHANGE_ATTRIBUTE},
                "ExpressionAttributeValues": {":before": {"N": str(before.change)}},
            }
        return {
            "TableName": self.name,
            "Item": {
                BUCKET_ATTRIBUTE: {"S": bucket},
                ID_ATTRIBUTE: {"S": written.id},
                CHANGE_ATTRIBUTE: {"N": str(written.change)},
                RECORD_ATTRIBUTE: {"S": written.to_json()},
                EXPIRY_ATTRIBUTE: {"N": str(written.expires + _KEPT_SECONDS)},
            },
            **condition,
        }


def _read(item: Mapping[str, Any]) -> KeyRecord:
    """Return the record of an item, without what a newer release has added: commands are upgraded first."""
    values = json.loads(item[RECORD_ATTRIBUTE]["S"])
    budget = values.get("budget")
    if isinstance(budget, dict):
        values["budget"] = {name: budget[name] for name in budget.keys() & _BUDGET_FIELDS}
    return KeyRecord.from_values({name: values[name] for name in _FIELDS if name in values})


def _entry(item: Mapping[str, Any]) -> KeyRecord | UnreadableKey:
    try:
        return _read(item)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        return UnreadableKey(item[ID_ATTRIBUTE]["S"], int(item[CHANGE_ATTRIBUTE]["N"]), reason)
