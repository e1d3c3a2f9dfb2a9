"""Ledger and usage records of a day are compared: what was lost is found, and nothing else."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pytest
from door_reconciliation import recorded_day
from door_reconciliation.handler import compared_day, reconcile
from door_reconciliation.recorded_day import TooManyRecordsError
from moto import mock_aws

from inference_contracts import door_names
from inference_contracts import reconciliation_names as names
from inference_contracts.door_configuration import NANO
from inference_contracts.door_ledger import NUMBERS, model_tag, team_tag
from inference_contracts.usage_record import UsageRecord

REGION, BUCKET, TABLE = "us-west-2", "usage", "ledger"
ZONE = "Europe/Berlin"
ENVIRONMENT = {names.PLATFORM: "try", names.TABLE: TABLE, names.BUCKET: BUCKET, names.ZONE: ZONE}


def at(text: str) -> int:
    """Return a time of the zone as seconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE)).timestamp())


#: The day that is compared, the days beside it, and when.
BEFORE, DAY, AFTER, LATER = (at(f"2026-11-{day}") for day in (27, 28, 29, 30))
NOW = at("2026-11-29T04:00")


class Day:
    """A table of checkpoints and a bucket of records."""

    def __init__(self) -> None:
        self.dynamodb: Any = boto3.client("dynamodb", region_name=REGION)
        self.s3: Any = boto3.client("s3", region_name=REGION)
        keys = ((door_names.SLOT_ATTRIBUTE, "HASH"), (door_names.ACCOUNT_ATTRIBUTE, "RANGE"))
        self.dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": each, "KeyType": kind} for each, kind in keys],
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each, _ in keys],
        )
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        self._objects = 0

    def count(self, tag: str, *numbers: int, account: str = "") -> None:
        """Write a checkpoint: day, spent, day before, spent in it."""
        values = dict(zip(NUMBERS, (*numbers, 0, 0, 0, 0), strict=True))
        self.dynamodb.put_item(
            TableName=TABLE,
            Item={
                door_names.SLOT_ATTRIBUTE: {"S": tag},
                door_names.ACCOUNT_ATTRIBUTE: {"S": account or tag},
                **{name: {"N": str(number)} for name, number in values.items()},
            },
        )

    def deliver(self, *lines: bytes, arrived: str = "2026-11-28", compressed: bool = True) -> None:
        """Write an object as Firehose does."""
        self._objects += 1
        content = b"".join(line + b"\n" for line in lines)
        self.s3.put_object(
            Bucket=BUCKET,
            Key=f"{door_names.USAGE_PREFIX}{door_names.USAGE_DAY}={arrived}/part-{self._objects}",
            Body=gzip.compress(content) if compressed else content,
        )

    def compare(self, now: int = NOW) -> dict[str, Any]:
        return reconcile(ENVIRONMENT, now, self.dynamodb, self.s3)


def record(reservation: str, team: str, nano: int, day: int = DAY) -> bytes:
    values: Mapping[str, Any] = {
        "id": "chosen-by-the-caller",
        "time": "2026-11-28T10:00:00.000Z",
        "team": team,
        "project": None,
        "key": "k1",
        "caller": None,
        "model": "qwen3-8b",
        "target": "qwen3-8b-main",
        "path": "/v1/chat/completions",
        "status": 200,
        "input_tokens": 10,
        "output_tokens": 5,
        "reserved_nano": 2 * nano,
        "cost_nano": nano,
        "basis": "usage",
        "milliseconds": 900,
        "stream": True,
        "replica": "door-1",
        "reservation": reservation,
        "day": day,
        "month": at("2026-11-01"),
    }
    return UsageRecord.from_values(values).to_json().encode()


@pytest.fixture
def day(monkeypatch: pytest.MonkeyPatch) -> Iterator[Day]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        yield Day()


def test_days_that_agree_do_not_differ(day: Day) -> None:
    """Red if a counter that has moved on, a model's counter or a key's is read as the team's day."""
    day.count(team_tag("ads"), DAY, 30, BEFORE, 7)  # has spent nothing since
    day.count(team_tag("search"), AFTER, 1000, DAY, 12)  # has
    day.count(team_tag("idle"), AFTER, 1000, BEFORE, 12)  # had nothing on the day
    day.count(team_tag("ads"), DAY, 30, BEFORE, 7, account=f"{team_tag('ads')}:k:k1")
    day.count(model_tag("qwen3-8b"), DAY, 42, BEFORE, 7)
    day.deliver(record("a", "ads", 10), record("b", "ads", 20), record("c", "search", 5))
    day.deliver(record("d", "search", 7), arrived="2026-11-30", compressed=False)
    day.deliver(record("e", "ads", 900, BEFORE), record("f", "ads", 900, AFTER))
    found = day.compare()
    assert found["day"] == "2026-11-28"
    assert (found[names.DIFFERENCE_PERCENT], found["recordedMoreUsd"], found["notCompared"]) == (0.0, {}, [])
    assert found[names.LEDGER_USD] == found[names.RECORDED_USD] == 42 / NANO
    assert (found["records"], found["copies"]) == (4, 0)
    [directive] = found["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == names.METRIC_NAMESPACE
    assert found["Platform"] == "try"


def test_a_record_that_is_delivered_twice_counts_once(day: Day) -> None:
    """Red if copies are added, or told apart by the identifier that callers choose."""
    day.count(team_tag("ads"), DAY, 30, BEFORE, 0)
    day.deliver(record("a", "ads", 10), record("b", "ads", 20))
    day.deliver(record("a", "ads", 10), record("b", "ads", 20), arrived="2026-11-29")
    found = day.compare()
    assert (found["copies"], found[names.DIFFERENCE_PERCENT]) == (2, 0.0)


def test_what_one_side_has_lost_is_found_by_team(day: Day) -> None:
    """Red if losses of one team hide gains of another, or a team that only one side knows is left out."""
    day.count(team_tag("ads"), DAY, 60, BEFORE, 0)
    day.count(team_tag("search"), DAY, 40, BEFORE, 0)
    day.deliver(record("a", "ads", 50), record("b", "unknown", 10))
    found = day.compare()
    assert found[names.DIFFERENCE_PERCENT] == pytest.approx(60.0)  # (10 + 40 + 10) of 100
    assert found["recordedMoreUsd"] == {"search": -40 / NANO, "ads": -10 / NANO, "unknown": 10 / NANO}


def test_records_before_firehose_has_delivered_them_are_missing_only_until_the_next_run(day: Day) -> None:
    day.count(team_tag("ads"), DAY, 30, BEFORE, 0)
    day.deliver(record("a", "ads", 10))
    assert day.compare()[names.DIFFERENCE_PERCENT] > names.MOST_DIFFERENT_PERCENT
    day.deliver(record("b", "ads", 20), arrived="2026-11-29")
    found = day.compare(NOW + 12 * 3600)
    assert (found["day"], found[names.DIFFERENCE_PERCENT]) == ("2026-11-28", 0.0)
    again = day.compare(NOW + 12 * 3600)
    assert {**again, "_aws": None} == {**found, "_aws": None}


def test_a_run_that_is_late_reports_no_false_difference(day: Day) -> None:
    """Red if a day that the ledger has forgotten is taken as a day without spending."""
    day.count(team_tag("ads"), LATER, 500, AFTER, 400)
    day.count(team_tag("search"), DAY, 5, BEFORE, 0)
    day.deliver(record("a", "ads", 10), record("b", "search", 5))
    found = day.compare()
    assert (found["notCompared"], found[names.DIFFERENCE_PERCENT]) == (["ads"], 0.0)
    assert found[names.RECORDED_USD] == 5 / NANO


def test_without_anything_to_compare_there_is_no_metric(day: Day) -> None:
    """Red if the alarm on a missing comparison would stay silent."""
    day.count(team_tag("ads"), LATER, 500, AFTER, 400)
    day.deliver(record("a", "ads", 10))
    assert "_aws" not in day.compare()


def test_a_day_without_requests_is_compared(day: Day) -> None:
    found = day.compare()
    assert (found[names.DIFFERENCE_PERCENT], found[names.LEDGER_USD]) == (0.0, 0.0)
    assert "_aws" in found


def test_lines_that_are_no_records_are_counted(day: Day) -> None:
    """Red if one bad line stops the comparison, or passes unseen."""
    day.count(team_tag("ads"), DAY, 10, BEFORE, 0)
    day.deliver(b'{"team": "ads", "cost_nano": "9"', b"[]", b'{"team": 1}', record("a", "ads", 10))
    found = day.compare()
    assert (found["unreadable"], found["records"], found[names.DIFFERENCE_PERCENT]) == (3, 1, 0.0)


def test_more_records_than_a_run_can_hold_are_an_error(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    day.deliver(record("a", "ads", 10))
    monkeypatch.setattr(recorded_day, "MOST_BYTES", 50)
    with pytest.raises(TooManyRecordsError, match="a run reads at most 50; compare"):
        day.compare()


@pytest.mark.parametrize(
    ("now", "day"),
    [
        ("2026-11-29T04:00", "2026-11-28"),
        ("2026-11-29T16:00", "2026-11-28"),
        ("2026-11-29T01:59", "2026-11-27"),  # streams of an hour may run
        ("2026-10-26T04:00", "2026-10-25"),  # has 25 hours
        ("2026-03-30T04:00", "2026-03-29"),  # has 23 hours
        ("2026-03-29T04:00", "2026-03-28"),  # two hours before is in the day before
    ],
)
def test_the_day_that_is_compared_has_ended_for_two_hours(now: str, day: str) -> None:
    found = compared_day(at(now), ZoneInfo(ZONE))
    assert datetime.fromtimestamp(found.day, ZoneInfo(ZONE)).date().isoformat() == day
