"""The function `batch.carry_over.handler.handle`: a custom resource of the stack of the front door.

With a front door, the budget of a team is what the door's ledger has. So when a door comes in mid-month, each
team's first checkpoint is what batch has spent in that month. Replicas start after it, and fill their store
from it. Properties: ``JobTable`` and ``LedgerTable``, names; ``TimeZone`` of the door's months; ``Teams``.

It counts the jobs that have ended, and the whole estimate of each job that was admitted and has not: nobody
knows yet what that one has cost. What its lines cost at the door counts again, so a job counts twice at most.

Batch's months are those of UTC. If both calendars have the same month, all of batch's counts. While UTC has
begun the next one (west of it), that counts too. While it is still in the last one (east of it), nothing
counts: its sum cannot be told from that of the month before.

A checkpoint that a replica has written stays as it is. So nothing happens on a platform that has a door, and
an update or a deletion does nothing.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from batch.jobs.job_table import JobTable
from batch.jobs.record_table import Table
from batch.jobs.spending import SpendingTable, month_of
from batch.scheduling.admissions import AdmissionTable, admitted
from inference_contracts.door_ledger import CHECKPOINT_SECONDS_KEPT, NUMBERS, team_tag, windows_at
from inference_contracts.door_names import (
    ACCOUNT_ATTRIBUTE,
    CARRIED_ATTRIBUTE,
    CHECKPOINT_EXPIRY_ATTRIBUTE,
    SLOT_ATTRIBUTE,
)
from inference_contracts.door_terms import NANO

_RETRIES: Final = urllib3.Retry(
    total=5, backoff_factor=0.5, allowed_methods=["PUT"], status_forcelist=[500, 503]
)


def handle(event: Mapping[str, Any], _context: object) -> None:
    """Carry the month over when the resource is created, and respond to CloudFormation."""
    properties = event["ResourceProperties"]
    answer: dict[str, Any] = {
        "Status": "SUCCESS",
        "Reason": "",
        # The same for ever: another one would mean that the resource is replaced.
        "PhysicalResourceId": event.get("PhysicalResourceId", f"spending of {properties['JobTable']}"),
    }
    if event["RequestType"] == "Create":
        try:
            carried = carry_over(
                boto3.resource("dynamodb").Table(properties["JobTable"]),
                boto3.client("dynamodb"),
                properties["LedgerTable"],
                teams=properties["Teams"],
                zone=ZoneInfo(properties["TimeZone"]),
                now=time.time(),
            )
            print(json.dumps({"event": "spending carried over", "usd": carried}), flush=True)
        except (BotoCoreError, ClientError) as error:
            answer |= {
                "Status": "FAILED",
                "Reason": f"what teams have spent this month was not taken from the table "
                f"{properties['JobTable']} to {properties['LedgerTable']}: {error}",
            }
    body = {**answer, **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}}
    urllib3.PoolManager().request(
        "PUT",
        event["ResponseURL"],
        body=json.dumps(body).encode(),
        # The address is signed for an empty content type.
        headers={"Content-Type": ""},
        retries=_RETRIES,
    )


def carry_over(
    jobs: Any, ledger: Any, ledger_table: str, *, teams: Sequence[str], zone: ZoneInfo, now: float
) -> dict[str, float]:
    """Write the first checkpoint of each team that has spent something, and return the dollars of each.

    jobs: The table of records, a resource of boto3.
    ledger, ledger_table: A client of DynamoDB, and the name of the table of checkpoints.
    zone: Time zone of the door's months.
    now: Seconds since 1970.
    """
    carried, month = {}, windows_at(now, zone).month
    for team, usd in _spent(Table(jobs), teams, _months(zone, now)).items():
        if usd > 0 and _put(ledger, ledger_table, team, {"m": month, "M": math.ceil(usd * NANO)}, now):
            carried[team] = usd
    return carried


def _months(zone: ZoneInfo, now: float) -> list[str]:
    """Return the months of batch that count for the door's month."""
    month = f"{datetime.fromtimestamp(now, zone):%Y-%m}"
    return sorted({month, max(month, month_of(now))})


def _spent(table: Table, teams: Sequence[str], months: Sequence[str]) -> dict[str, float]:
    # Jobs first: one that ends between the two readings counts twice, and not never.
    running = list(admitted(JobTable(table), AdmissionTable(table)))
    spending = SpendingTable(table)
    spent = {team: sum(spending.usd(team, month) for month in months) for team in teams}
    for each in running:
        if each.job.team in spent:
            spent[each.job.team] += each.admission.usd
    return spent


def _put(ledger: Any, table: str, team: str, spent: Mapping[str, int], now: float) -> bool:
    """Write a checkpoint, and return whether none of a replica is there.

    One that an earlier try has written is written again: after a deployment that was taken back, it is old.
    """
    tag = {"S": team_tag(team)}
    try:
        ledger.put_item(
            TableName=table,
            Item={
                SLOT_ATTRIBUTE: tag,
                ACCOUNT_ATTRIBUTE: tag,
                CHECKPOINT_EXPIRY_ATTRIBUTE: {"N": str(int(now) + CHECKPOINT_SECONDS_KEPT)},
                CARRIED_ATTRIBUTE: {"S": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")},
                **{name: {"N": str(spent.get(name, 0))} for name in NUMBERS},
            },
            ConditionExpression="attribute_not_exists(#slot) OR attribute_exists(#carried)",
            ExpressionAttributeNames={"#slot": SLOT_ATTRIBUTE, "#carried": CARRIED_ATTRIBUTE},
        )
    except ledger.exceptions.ConditionalCheckFailedException:
        return False
    return True
