"""The table of all records: one partition key, an index by team and one by state.

============== ==========================================================================================
Attribute      Meaning
============== ==========================================================================================
``id``         partition key: identifier of a job, file or upload, ``once#<digest>`` of a key of its sender,
               ``admission#<job>#<attempt>`` or ``spending#<team>#<month>``
``record``     the record itself
``collection`` partition key of the index ``byTeam``: ``<team>#job`` or ``<team>#file``
``openState``  partition key of the index ``byState``: a job's state, until it is final
``order``      sort key of both indexes: when it was made, in nanoseconds, and its identifier
``expires``    when DynamoDB deletes it (time to live), in seconds since 1970
others         figures of an item of sums, in place of a record (`batch.jobs.spending`)
============== ==========================================================================================

Whatever may be written twice is written under a condition, so of two writers one wins and the other is told
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

BY_TEAM: Final = "byTeam"
BY_STATE: Final = "byState"

_REFUSED: Final = "ConditionalCheckFailedException"
# Of a transaction; one that meets another write of the same item is tried again after a moment.
_CONDITION_FAILED: Final = "ConditionalCheckFailed"
_CONFLICT: Final = "TransactionConflict"
_CONFLICTS: Final = 12
_CONFLICT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Parameters
    ----------
    records
        Plain values of the records.
    has_more
        Whether the list goes on.
    """

    records: tuple[dict[str, Any], ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Additions:
    """What is added to an item of sums.

    Parameters
    ----------
    identifier
        Its partition key; it is made when something is added for the first time.
    figures
        What is added, by the sum's name.
    """

    identifier: str
    figures: Mapping[str, float]


class UnknownCursorError(Exception):
    """A list was asked to go on after what is not in it."""


class StateConflictError(Exception):
    """A record is not as the writer thought.

    Parameters
    ----------
    found
        The record's plain values; None where there is none.
    """

    def __init__(self, found: Mapping[str, Any] | None) -> None:
        super().__init__(f"the record is {found!r}")
        self.found = found


class Table:
    """The table.

    Parameters
    ----------
    table
        A `Table` of boto3's DynamoDB resource.
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    def get(self, identifier: str) -> dict[str, Any] | None:
        """Return the plain values of a record as it is now; None if there is none.

        Parameters
        ----------
        identifier
            Its partition key.
        """
        item = self._item(identifier)
        return None if item is None else _plain(item["record"])

    def sums(self, identifier: str) -> dict[str, float]:
        """Return the figures of an item of sums as they are now; none if nothing was ever added.

        Parameters
        ----------
        identifier
            Its partition key.
        """
        item = self._item(identifier) or {}
        return {name: value for name, value in _plain(item).items() if name != "id"}

    def put_new(self, item: Mapping[str, Any], *, now: int) -> bool:
        """Write an item unless there is one that has not expired; return whether it was written.

        Parameters
        ----------
        item
            Its attributes.
        now
            Seconds since 1970: DynamoDB deletes what has expired only some time later.
        """
        free = Attr("id").not_exists() | Attr("expires").lt(now)
        try:
            self._table.put_item(Item=_stored(item), ConditionExpression=free)
        except ClientError as error:
            if error.response["Error"]["Code"] != _REFUSED:
                raise
            return False
        return True

    def put(self, item: Mapping[str, Any]) -> None:
        """Write an item, whatever was there.

        Parameters
        ----------
        item
            Its attributes.
        """
        self._table.put_item(Item=_stored(item))

    def delete(self, identifier: str) -> None:
        """Delete an item, if it is there.

        Parameters
        ----------
        identifier
            Its partition key.
        """
        self._table.delete_item(Key={"id": identifier})

    def change(
        self,
        identifier: str,
        changes: Mapping[str, Any],
        *,
        expected: Mapping[str, Collection[Any]],
        open_state: str | None = None,
        additions: Additions | None = None,
    ) -> dict[str, Any]:
        """Change fields of a record if others are what the writer thinks, and return its plain values.

        Parameters
        ----------
        identifier
            Its partition key.
        changes
            New values by field; a dot leads into a map.
        expected
            Values of which each of these fields must have one.
        open_state
            What the index by state shows from now on; None where the record is in it no more.
        additions
            What is added to sums, in the same moment or not at all.

        Raises
        ------
        StateConflictError
            If they are not.
        """
        expression = _Expression()
        sets = [f"{expression.field(path)} = {expression.value(value)}" for path, value in changes.items()]
        conditions = [
            f"{expression.field(path)} IN ({', '.join(map(expression.value, values))})"
            for path, values in expected.items()
        ]
        if open_state is not None:
            sets.append(f"openState = {expression.value(open_state)}")
        update = f"SET {', '.join(sets)}" + ("" if open_state else " REMOVE openState")
        change = {
            "Key": {"id": identifier},
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
        """Change a record and add to sums, both or neither, and return the record's plain values."""
        identifier = change["Key"]["id"]
        names = list(additions.figures)
        adding = {
            "Key": {"id": additions.identifier},
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
            raise LookupError(f"{identifier}: was there and is not")
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
        """Return a part of a list by team.

        Parameters
        ----------
        collection
            The list.
        after
            Identifier of the entry before the first one; None for the beginning.
        limit
            Most entries.
        newest_first
            Whether the newest comes first.
        keep
            Whether a record belongs to what is asked for.

        Raises
        ------
        UnknownCursorError
            If there is no such entry in the list.
        """
        start: dict[str, Any] = {}
        if after is not None:
            item = self._item(after)
            if item is None or item.get("collection") != collection:
                raise UnknownCursorError(after)
            start = {"ExclusiveStartKey": {name: item[name] for name in ("id", "collection", "order")}}
        found: list[dict[str, Any]] = []
        # A page of DynamoDB ends at 1 MB, whatever the limit is.
        while len(found) <= limit:
            answer = self._table.query(
                IndexName=BY_TEAM,
                KeyConditionExpression=Key("collection").eq(collection),
                ScanIndexForward=not newest_first,
                Limit=limit + 1 - len(found),
                **start,
            )
            found += filter(keep, (_plain(item["record"]) for item in answer["Items"]))
            if "LastEvaluatedKey" not in answer:
                break
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return Page(tuple(found[:limit]), has_more=len(found) > limit)

    def in_state(self, state: str) -> Iterator[dict[str, Any]]:
        """Iterate over the records in a state that is not final, oldest first.

        Parameters
        ----------
        state
            The state.
        """
        start: dict[str, Any] = {}
        while True:
            answer = self._table.query(
                IndexName=BY_STATE, KeyConditionExpression=Key("openState").eq(state), **start
            )
            yield from (_plain(item["record"]) for item in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _item(self, identifier: str) -> dict[str, Any] | None:
        """Return an item as it is now."""
        item: dict[str, Any] | None = self._table.get_item(Key={"id": identifier}, ConsistentRead=True).get(
            "Item"
        )
        return item


class _Expression:
    """Names and values of an expression: every field is named, for many are words that DynamoDB reserves."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def field(self, path: str) -> str:
        """Return how a field of the record is written."""
        words = ["record", *path.split(".")]
        self.names.update({f"#{word}": word for word in words})
        return ".".join(f"#{word}" for word in words)

    def value(self, value: Any) -> str:
        """Return how a value is written."""
        name = f":value{len(self.values)}"
        self.values[name] = _stored(value)
        return name


def _stored(value: Any) -> Any:
    """Return values as DynamoDB takes them: decimals, no floating-point numbers."""
    return json.loads(json.dumps(value), parse_float=Decimal)


def _plain(value: Any) -> Any:
    """Return values as Python has them: a whole decimal is an integer."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
