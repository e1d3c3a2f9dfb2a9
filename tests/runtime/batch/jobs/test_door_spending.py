"""What a team has spent at the front door is read from its checkpoint, for the month of its time zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from batch.jobs.door_spending import DoorSpending, read_door_spending
from inference_contracts.door_ledger import NUMBERS, team_tag
from inference_contracts.door_names import ACCOUNT_ATTRIBUTE, SLOT_ATTRIBUTE

BERLIN = ZoneInfo("Europe/Berlin")


class Checkpoints:
    """A table with the checkpoint of one team."""

    def __init__(self, **numbers: int) -> None:
        self._item = {name: {"N": str(numbers.get(name, 0))} for name in NUMBERS}

    def get_item(self, *, TableName: str, Key: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:  # noqa: N803
        tag = {"S": team_tag("ads")}
        is_there = (TableName, Key) == ("ledger", {SLOT_ATTRIBUTE: tag, ACCOUNT_ATTRIBUTE: tag})
        return {"Item": self._item} if is_there else {}


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN).timestamp()


def test_the_month_is_that_of_the_door() -> None:
    """Red if a month of UTC, or the last one with spending, counts as the current one."""
    november, december = int(at(2026, 11, 1)), int(at(2026, 12, 1))
    table = Checkpoints(m=december, M=1_500_000_000, p=november, P=7_000_000_000)
    door = DoorSpending(table, "ledger", BERLIN)
    # In UTC, it is still November.
    assert door.usd("ads", at(2026, 12, 1, 0, 30)) == 1.5
    assert door.usd("ads", at(2026, 11, 30, 23, 59)) == 7.0
    assert door.usd("ads", at(2027, 1, 1)) == 0.0
    assert door.usd("search", at(2026, 12, 1)) == 0.0
    assert DoorSpending(Checkpoints(), "ledger", BERLIN).usd("ads", at(2026, 12, 1)) == 0.0


def test_a_platform_without_a_door_has_none() -> None:
    assert read_door_spending({}) is None
