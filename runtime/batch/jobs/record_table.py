"""The table of all records: one partition key, an index by team and an index by state.

============== ==========================================================================================
Attribute      Meaning
============== ==========================================================================================
``id``         partition key: identifier of a job, file or upload, ``once#<digest>`` of a key of its sender,
               ``admission#<job>#<attempt>``, ``speed#<model>``, ``ceiling#<model>``,
               ``deadlines#<model>``, ``deletion#<job or file>`` or ``spending#<team>#<month>``
``record``     the record itself
``collection`` partition key of the index ``byTeam``: ``<team>#job`` or ``<team>#file``
``openState``  partition key of the index ``byState``: a job's state, until it is final, or ``deletion``
``order``      sort key of both indexes: when it was made, in nanoseconds, and its identifier; of a
               deletion: when it is due, in seconds
``expires``    when DynamoDB deletes it (time to live), in seconds since 1970
others         figures of an item of sums, in place of a record (`batch.jobs.spending`)
============== ==========================================================================================

Writes that may be repeated have a condition. So one of two writers wins, and the other gets an error
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError

from inference_contracts.batch_names import (
    EXPIRY_ATTRIBUTE,
    ID_ATTRIBUTE,
    ORDER_ATTRIBUTE,
    STATE_INDEX,
    STATE_INDEX_KEY,
    TEAM_INDEX,
    TEAM_INDEX_KEY,
)

_REFUSED: Final = "ConditionalCheckFailedException"
# Attempts at a transaction. One that conflicts with another write of the same item is repeated after a
# moment.
_CONDITION_FAILED: Final = "ConditionalCheckFailed"
_CONFLICT: Final = "TransactionConflict"
_CONFLICTS: Final = 12
_CONFLICT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list."""

    records: tuple[dict[str, Any], ...]
    """Plain values of the records."""
    has_more: bool
    """Whether more pages follow."""


@dataclass(frozen=True, slots=True)
class Additions:
    """Amounts to add to an item of sums."""

    identifier: str
    """Partition key. The first addition creates the item."""
    figures: Mapping[str, float]
    """Amounts by the name of the sum."""


class UnknownCursorError(Exception):
    """The cursor of a list names an entry that is not in the list."""


class StateConflictError(Exception):
    """A record is not in the state that the writer expected.

    found: The record's plain values; None if it does not exist.
    """

    def __init__(self, found: Mapping[str, Any] | None) -> None:
        super().__init__(f"the record is {found!r}")
        self.found = found


class Table:
    def __init__(self, table: Any) -> None:
        self._table = table

    def get(self, identifier: str) -> dict[str, Any] | None:
        """Return the current plain values of a record, read consistently; None if it does not exist."""
        item = self._item(identifier)
        return None if item is None else _plain(item["record"])

    def sums(self, identifier: str) -> dict[str, float]:
        """Return the current values of an item of sums; empty if nothing was ever added."""
        item = self._item(identifier) or {}
        return {name: value for name, value in _plain(item).items() if name != ID_ATTRIBUTE}

    def put_new(self, item: Mapping[str, Any], *, now: int) -> bool:
        """Write an item unless an unexpired one exists, and return whether it was written.

        now: Seconds since 1970. DynamoDB deletes expired items only some time later.
        """
        free = Attr(ID_ATTRIBUTE).not_exists() | Attr(EXPIRY_ATTRIBUTE).lt(now)
        try:
            self._table.put_item(Item=_stored(item), ConditionExpression=free)
        except ClientError as error:
            if error.response["Error"]["Code"] != _REFUSED:
                raise
            return False
        return True

    def put(self, item: Mapping[str, Any]) -> None:
        """Write an item, and replace any earlier one."""
        self._table.put_item(Item=_stored(item))

    def delete(self, identifier: str) -> None:
        """Delete an item, if it exists."""
        self._table.delete_item(Key={ID_ATTRIBUTE: identifier})

    def change(
        self,
        identifier: str,
        changes: Mapping[str, Any],
        *,
        expected: Mapping[str, Collection[Any]],
        open_state: str | None = None,
        additions: Additions | None = None,
    ) -> dict[str, Any]:
        """Change fields of a record if other fields have the expected values, and return its plain values.

        changes: New values by field. A dot separates the keys of nested maps.
        expected: Allowed current values by field.
        open_state: New key in the index by state; None to remove the record from that index.
        additions: Amounts added to sums in the same transaction.
        Raises StateConflictError if a field has another value.
        """
        expression = _Expression()
        sets = [f"{expression.field(path)} = {expression.value(value)}" for path, value in changes.items()]
        conditions = [
            f"{expression.field(path)} IN ({', '.join(map(expression.value, values))})"
            for path, values in expected.items()
        ]
        if open_state is not None:
            sets.append(f"{STATE_INDEX_KEY} = {expression.value(open_state)}")
        update = f"SET {', '.join(sets)}" + ("" if open_state else f" REMOVE {STATE_INDEX_KEY}")
        change = {
            "Key": {ID_ATTRIBUTE: identifier},
            "UpdateExpression": update,
            "ConditionExpression": " AND ".join(conditions),
            "ExpressionAttributeNames": expression.names,
            "ExpressionAttributeValues": expression.values,
        }
        if additions is not None:
            return self._change_and_add(change, additions)
        try:
            answer = self._table.update_item(**change, ReturnValues="ALL_NEW")
        except ClientError as error:
            if error.response["Error"]["Code"] != _REFUSED:
                raise
            raise StateConflictError(self.get(identifier)) from error
        changed: dict[str, Any] = _plain(answer["Attributes"]["record"])
        return changed

    def _change_and_add(self, change: Mapping[str, Any], additions: Additions) -> dict[str, Any]:
        """Change a record and add to sums in one transaction, and return the record's plain values."""
        identifier = change["Key"][ID_ATTRIBUTE]
        names = list(additions.figures)
        adding = {
            "Key": {ID_ATTRIBUTE: additions.identifier},
            "UpdateExpression": "ADD " + ", ".join(f"#{at} :{at}" for at in range(len(names))),
            "ExpressionAttributeNames": {f"#{at}": name for at, name in enumerate(names)},
            "ExpressionAttributeValues": {
                f":{at}": _stored(additions.figures[name]) for at, name in enumerate(names)
            },
        }
        updates = [{"Update": {"TableName": self._table.name, **each}} for each in (change, adding)]
        for attempt in range(1, _CONFLICTS + 1):
            try:
                self._table.meta.client.transact_write_items(TransactItems=updates)
                break
            except ClientError as error:
                reasons = {each["Code"] for each in error.response.get("CancellationReasons", [])}
                if _CONDITION_FAILED in reasons:
                    raise StateConflictError(self.get(identifier)) from error
                if _CONFLICT not in reasons or attempt == _CONFLICTS:
                    raise
                time.sleep(random.uniform(0, _CONFLICT_SECONDS * attempt))  # noqa: S311 - no secret
        changed = self.get(identifier)
        if changed is None:
            raise LookupError(f"{identifier}: has disappeared from the table")
        return changed

    def page(
        self,
        collection: str,
        *,
        after: str | None,
        limit: int,
        newest_first: bool = True,
        keep: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> Page:
        """Return one page of a team's list.

        after: Identifier of the entry before the first one; None for the start of the list.
        newest_first: Whether the list starts with the newest entry.
        keep: Returns whether a record belongs to the result.
        Raises UnknownCursorError if the list has no such entry.
        """
        start: dict[str, Any] = {}
        if after is not None:
            item = self._item(after)
            if item is None or item.get(TEAM_INDEX_KEY) != collection:
                raise UnknownCursorError(after)
            start = {
                "ExclusiveStartKey": {
                    name: item[name] for name in (ID_ATTRIBUTE, TEAM_INDEX_KEY, ORDER_ATTRIBUTE)
                }
            }
        found: list[dict[str, Any]] = []
        # DynamoDB ends a page at 1 MB, regardless of the limit.
        while len(found) <= limit:
            answer = self._table.query(
                IndexName=TEAM_INDEX,
                KeyConditionExpression=Key(TEAM_INDEX_KEY).eq(collection),
                ScanIndexForward=not newest_first,
                Limit=limit + 1 - len(found),
                **start,
            )
            found += filter(keep, (_plain(item["record"]) for item in answer["Items"]))
            if "LastEvaluatedKey" not in answer:
                break
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return Page(tuple(found[:limit]), has_more=len(found) > limit)

    def in_state(self, state: str, *, before: str | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over the records in a state that is not final, oldest first.

        before: Value of the sort key at which to stop; None for all records.
        """
        start: dict[str, Any] = {}
        condition = Key(STATE_INDEX_KEY).eq(state)
        if before is not None:
            condition &= Key(ORDER_ATTRIBUTE).lt(before)
        while True:
            answer = self._table.query(IndexName=STATE_INDEX, KeyConditionExpression=condition, **start)
            yield from (_plain(item["record"]) for item in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _item(self, identifier: str) -> dict[str, Any] | None:
        """Return an item, read consistently."""
        item: dict[str, Any] | None = self._table.get_item(
            Key={ID_ATTRIBUTE: identifier}, ConsistentRead=True
        ).get("Item")
        return item


class _Expression:
    """Names and values of an expression.

    Every field gets a placeholder, because DynamoDB reserves many words.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def field(self, path: str) -> str:
        """Return the placeholder of a field of the record."""
        words = ["record", *path.split(".")]
        self.names.update({f"#{word}": word for word in words})
        return ".".join(f"#{word}" for word in words)

    def value(self, value: Any) -> str:
        """Return the placeholder of a value."""
        name = f":value{len(self.values)}"
        self.values[name] = _stored(value)
        return name


def _stored(value: Any) -> Any:
    """Convert values for DynamoDB, which takes decimals instead of floats."""
    return json.loads(json.dumps(value), parse_float=Decimal)


def _plain(value: Any) -> Any:
    """Convert values from DynamoDB. A whole decimal becomes an integer."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
