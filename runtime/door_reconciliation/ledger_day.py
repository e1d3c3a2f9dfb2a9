"""Reads in the checkpoints of the ledger what each team has spent on a day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inference_contracts.door_ledger import NUMBERS, team_of
from inference_contracts.door_names import ACCOUNT_ATTRIBUTE, SLOT_ATTRIBUTE


@dataclass(frozen=True, slots=True)
class LedgerDay:
    """What the ledger has counted on a day."""

    nano: Mapping[str, int]
    """Nano-dollars by team."""
    unknown: frozenset[str]
    """Teams that have spent something on two later days: a counter keeps two days."""


def read_ledger(dynamodb: Any, table: str, day: int) -> LedgerDay:
    """Return what was spent on a day.

    dynamodb: Client of DynamoDB.
    day: First second of the day, since 1970.
    """
    nano: dict[str, int] = {}
    unknown: set[str] = set()
    for team, (last_day, last, day_before, before) in _counters(dynamodb, table):
        if day_before > day:
            unknown.add(team)
        elif last_day == day:
            nano[team] = last
        elif day_before == day:
            nano[team] = before
    return LedgerDay(nano, frozenset(unknown))


def _counters(dynamodb: Any, table: str) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """Yield the counters of teams. Only their key is the slot of their keys."""
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression="#slot = #account",
        ProjectionExpression="#slot, #d, #D, #e, #E",
        ExpressionAttributeNames={
            "#slot": SLOT_ATTRIBUTE,
            "#account": ACCOUNT_ATTRIBUTE,
            **{f"#{name}": name for name in NUMBERS[:4]},
        },
    )
    for page in pages:
        for item in page["Items"]:
            team = team_of(item[SLOT_ATTRIBUTE]["S"])
            if team is not None:
                last_day, last, day_before, before = (int(item[name]["N"]) for name in NUMBERS[:4])
                yield team, (last_day, last, day_before, before)
