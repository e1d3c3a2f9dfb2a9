"""What teams have spent at the front door in its month: the one ledger of all their requests.

The door's replicas copy their counters to a table every two seconds. A platform with a front door tells the
functions its name and the time zone of its months (``BATCH_DOOR_LEDGER_TABLE``, ``BATCH_DOOR_TIME_ZONE``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import boto3

from inference_contracts import batch_names
from inference_contracts.door_ledger import team_tag, windows_at
from inference_contracts.door_names import ACCOUNT_ATTRIBUTE, SLOT_ATTRIBUTE
from inference_contracts.door_terms import NANO


class DoorSpending:
    """The counters of the teams.

    client: A boto3 client of DynamoDB.
    table: Name of the table of the ledger's checkpoints.
    zone: Time zone of the door's days and months.
    """

    def __init__(self, client: Any, table: str, zone: ZoneInfo) -> None:
        self._client, self._table, self._zone = client, table, zone

    def usd(self, team: str, now: float) -> float:
        """Return what a team's requests have cost in the month of a time, those of its jobs among them."""
        tag = team_tag(team)
        item = self._client.get_item(
            TableName=self._table,
            Key={SLOT_ATTRIBUTE: {"S": tag}, ACCOUNT_ATTRIBUTE: {"S": tag}},
            ConsistentRead=True,
        ).get("Item")
        if item is None:
            return 0.0
        month = windows_at(now, self._zone).month
        # The month that was charged last, and the one before.
        spent = {int(item[first]["N"]): int(item[sum_]["N"]) for first, sum_ in (("p", "P"), ("m", "M"))}
        return spent.get(month, 0) / NANO


def read_door_spending(environment: Mapping[str, str]) -> DoorSpending | None:
    """Return what teams have spent at the front door. None if the platform has none."""
    table = environment.get(batch_names.DOOR_LEDGER_TABLE)
    if not table:
        return None
    zone = ZoneInfo(environment[batch_names.DOOR_TIME_ZONE])
    return DoorSpending(boto3.client("dynamodb"), table, zone)
