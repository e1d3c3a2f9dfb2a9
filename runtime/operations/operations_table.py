"""The table of the controllers: records with versions, of which the same version is written once.

A write has a condition on the version that was read. So of two runs at once, one is stored
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithItems.html#WorkingWithItems.ConditionalUpdate).
A record is JSON in the attribute ``record``, as text, or compressed by gzip if it is long: an item has at
most 400 KB ("Quotas in Amazon DynamoDB", item size), and a decision of the capacity shift has 709 bytes for
each elastic role. Reads are consistent.
"""

from __future__ import annotations

import gzip
import itertools
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from boto3.dynamodb.conditions import Attr, ConditionExpressionBuilder, Key
from boto3.dynamodb.types import Binary
from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts.operations_names import (
    ENTRY_ATTRIBUTE,
    EXPIRY_ATTRIBUTE,
    SCOPE_ATTRIBUTE,
    table_scope,
)
from operations.operations_errors import TableError, VersionConflictError

#: Why DynamoDB cancels a transaction: a condition does not hold, or another write is under way.
_REFUSED: Final = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
_RECORD: Final = "record"
_VERSION: Final = "version"
#: Longest record that is stored as text, which people can read in the console.
_TEXT_CHARACTERS: Final = 65_536
#: How long audit records are kept.
_AUDIT_SECONDS: Final = 400 * 86400
#: Numbers of the audit records of this process.
_WRITTEN: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, and its version."""

    entry: str
    """Sort key."""
    content: dict[str, Any]
    """The record."""
    version: int
    """Number of writes."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What a controller decided."""

    service: str
    """Who decided, such as ``gpu-health``."""
    content: Mapping[str, Any]
    """What was decided, and why."""
    at: float
    """When, in seconds since the epoch."""


class OperationsTable:
    """The items of one cell.

    table: The table, a resource of boto3.
    """

    def __init__(self, table: Any, platform: str, cell: str) -> None:
        self._table, self._scope = table, table_scope(platform, cell)

    def read(self, entry: str, now: float) -> StoredRecord | None:
        """Return a record. None if there is none, or it has expired.

        DynamoDB deletes expired items within days, so they are filtered here
        (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html).
        """
        try:
            answer = self._table.get_item(Key=self._key(entry), ConsistentRead=True)
        except (ClientError, BotoCoreError) as error:
            raise TableError(f"the table did not answer: {error}") from error
        item = answer.get("Item")
        return None if item is None or _expired(item, now) else _stored(item)

    def list(self, prefix: str, now: float) -> Iterator[StoredRecord]:
        """Return the records whose sort keys begin with a text, in their order."""
        query: dict[str, Any] = {
            "KeyConditionExpression": Key(SCOPE_ATTRIBUTE).eq(self._scope)
            & Key(ENTRY_ATTRIBUTE).begins_with(prefix),
            "ConsistentRead": True,
        }
        while True:
            try:
                answer = self._table.query(**query)
            except (ClientError, BotoCoreError) as error:
                raise TableError(f"the table did not answer: {error}") from error
            yield from (_stored(item) for item in answer["Items"] if not _expired(item, now))
            if "LastEvaluatedKey" not in answer:
                return
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def write(
        self,
        entry: str,
        content: Mapping[str, Any],
        *,
        version: int,
        now: float,
        expires: float | None = None,
        audit: AuditRecord | None = None,
    ) -> int:
        """Write a record if nobody else did since it was read, and return its new version.

        entry: Sort key.
        content: The record.
        version: Version that was read; 0 for a record that did not exist, or has expired.
        now: Seconds since the epoch.
        expires: When it may be deleted, in seconds since the epoch.
        audit: An audit record that is written with it, or not at all.
        Raises VersionConflictError if somebody else wrote it. Raises TableError if DynamoDB did not answer.
            The record may have been written.
        """
        unread = Attr(SCOPE_ATTRIBUTE).not_exists() | Attr(EXPIRY_ATTRIBUTE).lte(int(now))
        condition = ConditionExpressionBuilder().build_expression(
            Attr(_VERSION).eq(version) if version else unread
        )
        put = {
            "Item": self._item(entry, content, version + 1, expires),
            "ConditionExpression": condition.condition_expression,
            "ExpressionAttributeNames": condition.attribute_name_placeholders,
            "ExpressionAttributeValues": condition.attribute_value_placeholders,
        }
        puts = [put, *([] if audit is None else [self._audit_put(audit)])]
        try:
            self._table.meta.client.transact_write_items(
                TransactItems=[{"Put": {"TableName": self._table.name, **each}} for each in puts]
            )
        except ClientError as error:
            if _refused(error):
                raise VersionConflictError(f"{entry} was written by somebody else") from error
            raise TableError(f"the table did not take {entry}: {error}") from error
        except BotoCoreError as error:
            raise TableError(f"the table did not answer: {error}") from error
        return version + 1

    def audit(self, record: AuditRecord) -> None:
        """Add an audit record. Raises TableError if DynamoDB did not answer."""
        try:
            self._table.put_item(**self._audit_put(record))
        except (ClientError, BotoCoreError) as error:
            raise TableError(f"the table did not take an audit record: {error}") from error

    def _audit_put(self, record: AuditRecord) -> dict[str, Any]:
        # The numbers have a fixed width, so that records are in the order of time, and those that one run
        # writes for the same time in the order in which it wrote them.
        order = f"{next(_WRITTEN):09d}"
        entry = f"audit#{record.service}#{record.at:017.6f}#{order}#{uuid.uuid4().hex[:8]}"
        return {"Item": self._item(entry, record.content, 1, record.at + _AUDIT_SECONDS)}

    def _item(
        self, entry: str, content: Mapping[str, Any], version: int, expires: float | None
    ) -> dict[str, Any]:
        return {
            **self._key(entry),
            _RECORD: _packed(content),
            _VERSION: version,
            **({} if expires is None else {EXPIRY_ATTRIBUTE: int(expires)}),
        }

    def _key(self, entry: str) -> dict[str, str]:
        return {SCOPE_ATTRIBUTE: self._scope, ENTRY_ATTRIBUTE: entry}


def _expired(item: Mapping[str, Any], now: float) -> bool:
    return EXPIRY_ATTRIBUTE in item and float(item[EXPIRY_ATTRIBUTE]) <= now


def _packed(content: Mapping[str, Any]) -> str | bytes:
    text = json.dumps(content, sort_keys=True)
    return text if len(text) <= _TEXT_CHARACTERS else gzip.compress(text.encode())


def _stored(item: Mapping[str, Any]) -> StoredRecord:
    record = item[_RECORD]
    text = gzip.decompress(record.value) if isinstance(record, Binary) else record
    return StoredRecord(str(item[ENTRY_ATTRIBUTE]), json.loads(text), int(item[_VERSION]))


def _refused(error: ClientError) -> bool:
    """Return whether somebody else wrote the item, by the reasons of a cancelled transaction.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    reasons = error.response.get("CancellationReasons", [])
    return any(reason.get("Code") in _REFUSED for reason in reasons)
