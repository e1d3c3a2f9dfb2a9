"""What batch has spent in a month is the first checkpoint of a team at a front door that comes in it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pytest
import urllib3

from batch.carry_over.handler import carry_over, handle
from batch.jobs.door_spending import DoorSpending
from batch.jobs.settings import BatchPlatform
from batch.jobs.spending import Figures, additions
from batch.scheduling.admissions import Admission, AdmissionTable
from inference_contracts import door_names
from inference_contracts.door_ledger import NUMBERS, team_tag, windows_at
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import make_job

LEDGER = "ledger"
BERLIN, UTC, PACIFIC = map(ZoneInfo, ("Europe/Berlin", "UTC", "America/Los_Angeles"))
TEAMS = ("search", "adverts")


def at(text: str) -> int:
    """Return a time of UTC as seconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


NOW = at("2026-11-20T12:00")


class Upgrade:
    """Batch's table, and a table of checkpoints."""

    def __init__(self, batch: BatchPlatform) -> None:
        self.batch = batch
        self.dynamodb: Any = boto3.client("dynamodb", region_name=resources.REGION)
        keys = ((door_names.SLOT_ATTRIBUTE, "HASH"), (door_names.ACCOUNT_ATTRIBUTE, "RANGE"))
        self.dynamodb.create_table(
            TableName=LEDGER,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": each, "KeyType": kind} for each, kind in keys],
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each, _ in keys],
        )

    def spend(self, usd: float, *, team: str = "search", ended: int = NOW) -> None:
        """End a job."""
        job = make_job(self.batch, state="in_progress", team=team)
        added = additions(job, Figures(jobs=1, usd=usd), now=ended)
        self.batch.jobs.move(job.id, "failed", before=["in_progress"], now=ended, additions=added)

    def run(self, usd: float, *, places: int | None = 4) -> None:
        """Admit a job, or leave it waiting."""
        job = make_job(self.batch, state="in_progress" if places else "validating")
        admission = Admission(job.id, job.attempt, "token", 3, 0, 10.0, usd, places)
        AdmissionTable(self.batch.table).put(admission, now=NOW)

    def carry(self, zone: ZoneInfo = UTC, now: int = NOW) -> Mapping[str, float]:
        table = boto3.resource("dynamodb", region_name=resources.REGION).Table(resources.TABLE)
        return carry_over(table, self.dynamodb, LEDGER, teams=TEAMS, zone=zone, now=now)

    def spent(self, team: str = "search", zone: ZoneInfo = UTC, now: int = NOW) -> float:
        """Return what the ledger says."""
        return DoorSpending(self.dynamodb, LEDGER, zone).usd(team, now)

    def item(self, team: str = "search") -> dict[str, Any] | None:
        tag = {"S": team_tag(team)}
        key = {door_names.SLOT_ATTRIBUTE: tag, door_names.ACCOUNT_ATTRIBUTE: tag}
        found: dict[str, Any] | None = self.dynamodb.get_item(TableName=LEDGER, Key=key).get("Item")
        return found


@pytest.fixture
def upgrade(platform_in_process: BatchPlatform) -> Upgrade:
    return Upgrade(platform_in_process)


def test_the_month_of_each_team_is_carried_over_and_twice_is_harmless(upgrade: Upgrade) -> None:
    """Red if a team may spend its month twice, or pays for another one's or for last month's jobs."""
    upgrade.spend(50.0)
    upgrade.spend(30.0)
    upgrade.spend(7.0, ended=at("2026-10-31T23:59"))
    for _ in range(2):
        assert upgrade.carry() == {"search": 80.0}
        assert upgrade.spent() == 80.0
    item = upgrade.item()
    assert item is not None
    assert {name: int(item[name]["N"]) for name in NUMBERS if item[name]["N"] != "0"} == {
        "m": windows_at(NOW, UTC).month,
        "M": 80_000_000_000,
    }
    assert int(item[door_names.CHECKPOINT_EXPIRY_ATTRIBUTE]["N"]) > at("2026-12-31")
    # Who has spent nothing has no checkpoint.
    assert upgrade.item("adverts") is None


def test_a_checkpoint_of_a_replica_stays(upgrade: Upgrade) -> None:
    """Red if a platform that has a door loses what its ledger has counted."""
    upgrade.spend(80.0)
    upgrade.carry()
    tag = {"S": team_tag("search")}
    numbers = dict.fromkeys(NUMBERS, 0) | {"m": windows_at(NOW, UTC).month, "M": 95_000_000_000}
    # As `front_door.checkpoints` writes it.
    item = {name: {"N": str(number)} for name, number in numbers.items()}
    keys = {door_names.SLOT_ATTRIBUTE: tag, door_names.ACCOUNT_ATTRIBUTE: tag}
    upgrade.dynamodb.put_item(TableName=LEDGER, Item={**keys, **item})
    assert upgrade.carry() == {}
    assert upgrade.spent() == 95.0


def test_a_second_try_after_a_deployment_that_was_taken_back_has_what_came_since(upgrade: Upgrade) -> None:
    """Red if what batch has spent between the two tries is forgotten."""
    upgrade.spend(20.0)
    upgrade.carry()
    upgrade.spend(60.0)
    upgrade.carry()
    assert upgrade.spent() == 80.0


def test_a_job_that_was_admitted_counts_with_its_estimate(upgrade: Upgrade) -> None:
    """Red if what a job has spent before the door came is forgotten, or if one that waits counts too."""
    upgrade.spend(30.0)
    upgrade.run(25.0)
    upgrade.run(40.0, places=None)
    assert upgrade.carry() == {"search": 55.0}


@pytest.mark.parametrize(
    ("zone", "now", "carried"),
    [
        # Both have November, which began an hour earlier in Berlin: that hour is October's in UTC.
        (BERLIN, "2026-11-20T12:00", 10.0),
        # December has begun in Berlin, and November's sum in UTC is not December's.
        (BERLIN, "2026-11-30T23:30", 0.0),
        # December has begun in UTC, and it is still November at the door.
        (PACIFIC, "2026-12-01T02:00", 12.0),
        (PACIFIC, "2026-12-01T09:00", 2.0),
    ],
)
def test_months_of_batch_are_those_of_utc(upgrade: Upgrade, zone: ZoneInfo, now: str, carried: float) -> None:
    for usd, ended in ((100.0, "2026-10-31T23:30"), (10.0, "2026-11-15T00:00"), (2.0, "2026-12-01T01:00")):
        if ended < now:
            upgrade.spend(usd, ended=at(ended))
    upgrade.carry(zone, at(now))
    assert upgrade.spent("search", zone, at(now)) == carried


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What CloudFormation is told."""
    answers: list[dict[str, Any]] = []

    class Pool:
        def request(self, method: str, url: str, *, body: bytes, **_: Any) -> None:
            assert (method, url) == ("PUT", "https://answer")
            answers.append(json.loads(body))

    monkeypatch.setattr(urllib3, "PoolManager", Pool)
    return answers


def event(kind: str, ledger: str = LEDGER) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": "https://answer",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Month",
        "ResourceProperties": {
            "JobTable": resources.TABLE,
            "LedgerTable": ledger,
            "TimeZone": "Europe/Berlin",
            "Teams": list(TEAMS),
        },
    }


def test_it_runs_when_the_door_comes_and_never_again(
    upgrade: Upgrade, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if an update writes, or if the resource gets another name: CloudFormation would replace it."""
    monkeypatch.setattr(time, "time", lambda: float(NOW))
    upgrade.spend(80.0)
    for kind in ("Update", "Delete"):
        handle(event(kind), None)
        assert upgrade.item() is None
    handle(event("Create"), None)
    assert upgrade.spent(zone=BERLIN) == 80.0
    assert {each["Status"] for each in told} == {"SUCCESS"}
    assert len({each["PhysicalResourceId"] for each in told}) == 1


def test_a_table_that_does_not_answer_fails_the_deployment_and_is_named(
    upgrade: Upgrade, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if a door opens without what its teams have spent."""
    monkeypatch.setattr(time, "time", lambda: float(NOW))
    upgrade.spend(80.0)
    handle(event("Create", "none"), None)
    assert told[0]["Status"] == "FAILED"
    assert resources.TABLE in told[0]["Reason"]
    assert "to none" in told[0]["Reason"]
