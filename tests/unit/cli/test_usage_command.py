"""The command `usage`: which records it counts, once each, and what it prints."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pytest
from moto import mock_aws

from inference_blueprints.operate.attributed_costs import attributed_costs, door_shares
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.front_door import usage_records
from inference_blueprints.operate.front_door.usage_records import day_window, month_window, of_time
from inference_blueprints.render.monitoring.cost_shares import UNATTRIBUTED
from inference_contracts.door_names import USAGE_BUCKET_OUTPUT, USAGE_DAY, USAGE_PREFIX
from inference_contracts.errors import UserError
from inference_contracts.usage_record import UsageRecord
from inference_decisions.promql.cloudwatch_promql import MetricSeries
from tests.runtime.front_door.keys.key_tables import REGION
from tests.unit.cli.batch_commands import Run
from tests.unit.cli.test_keys_commands import PLAIN, FakeSts
from tests.unit.command_run import blueprints
from tests.unit.operate.fake_cloudformation import FakeCloudFormation

BERLIN = ZoneInfo("Europe/Berlin")
BUCKET = "usage-records"
DOOR = PLAIN + "  frontDoor: {timeZone: Europe/Berlin}\n"
NEXT = iter(range(10**6))


def record(at: datetime, **facts: Any) -> UsageRecord:
    """Return the record of a request that the ledger has charged to the day of a time in Berlin."""
    local = at.astimezone(BERLIN)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    plain: dict[str, Any] = {
        "id": "r",
        "time": at.isoformat(),
        "team": "search",
        "project": None,
        "key": "k1",
        "caller": None,
        "model": "qwen3-8b",
        "target": "qwen3-8b-main",
        "path": "/v1/chat/completions",
        "status": 200,
        "input_tokens": 100,
        "output_tokens": 10,
        "reserved_nano": 900,
        "cost_nano": 600,
        "basis": "usage",
        "milliseconds": 5,
        "stream": False,
        "replica": "door-1",
        "reservation": f"{next(NEXT):016x}",
        "day": int(midnight.timestamp()),
        "month": int(midnight.replace(day=1).timestamp()),
    }
    return UsageRecord.from_values({**plain, **facts})


class Bucket:
    """The bucket of usage records."""

    def __init__(self, client: Any) -> None:
        self.client = client
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def add(self, day: str, *records: UsageRecord, compressed: bool = True, name: str = "a") -> None:
        content = b"".join(each.to_json().encode() + b"\n" for each in records)
        key = f"{USAGE_PREFIX}{USAGE_DAY}={day}/{name}"
        body = gzip.compress(content) if compressed else content
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    stacks = FakeCloudFormation()
    stacks.add("chat-FrontDoor", "chat")
    stacks.outputs["chat-FrontDoor"] = {USAGE_BUCKET_OUTPUT: BUCKET}
    with mock_aws():
        found = Bucket(boto3.client("s3", region_name=REGION))
        clients = {"s3": found.client, "cloudformation": stacks, "sts": FakeSts()}
        monkeypatch.setattr(Account, "client", lambda _, service: clients[service])
        yield found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "door.yaml").write_text(DOOR, encoding="utf-8")
    (tmp_path / "plain.yaml").write_text(PLAIN, encoding="utf-8")
    return partial(blueprints, folder=tmp_path)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def document(run: Run, *words: str) -> dict[str, Any]:
    ran = run("usage", "door.yaml", *words, "-o", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_a_month_is_that_of_the_ledger(run: Run, bucket: Bucket) -> None:
    # In Berlin, October began at 22:00 UTC of the day before; the record of a long stream arrives a day late.
    bucket.add("2026-09-30", record(at("2026-09-30T21:59:59")), record(at("2026-09-30T22:00:00")))
    bucket.add("2026-11-02", record(at("2026-10-31T22:59:59")), record(at("2026-10-31T23:00:00")))
    found = document(run, "--month", "2026-10")
    assert (found["requests"], found["usd"]) == (2, 1200 / 10**9)
    assert (found["from"], found["to"]) == ("2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00")


def test_a_day_is_that_of_the_ledger(run: Run, bucket: Bucket) -> None:
    records = [record(at(f"2026-10-04T{hour:02}:30:00")) for hour in range(24)]
    bucket.add("2026-10-04", *records)
    assert document(run, "--day", "2026-10-04")["requests"] == 22
    assert document(run, "--day", "2026-10-05")["requests"] == 2


def test_a_record_that_was_delivered_twice_counts_once(run: Run, bucket: Bucket) -> None:
    # Firehose delivers at least once, and two requests may have one identifier, which callers choose.
    one, two = record(at("2026-10-04T10:00:00")), record(at("2026-10-04T10:00:00"))
    bucket.add("2026-10-04", one, two, name="a")
    bucket.add("2026-10-05", one, name="b", compressed=False)
    assert document(run, "--month", "2026-10")["rows"] == [
        {
            "team": "search",
            "requests": 2,
            "failed": 0,
            "cut": 0,
            "inputTokens": 200,
            "outputTokens": 20,
            "usd": 1200 / 10**9,
        }
    ]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (["team"], [["ads"], ["search"]]),
        (["project"], [["ads/web"], ["search/-"]]),
        (["key"], [["-"], ["k1"]]),
        (["model"], [["big"], ["qwen3-8b"]]),
        (["user"], [["arn:aws:iam::1:role/Ads"], ["k1"]]),
        (["model", "team"], [["big", "ads"], ["qwen3-8b", "search"]]),
    ],
)
def test_rows_are_told_apart_and_sorted_by_cost(
    run: Run, bucket: Bucket, by: list[str], expected: list[list[str]]
) -> None:
    when = at("2026-10-04T10:00:00")
    other = record(
        when,
        team="ads",
        project="web",
        key=None,
        caller="arn:aws:iam::1:role/Ads",
        model="big",
        cost_nano=9000,
    )
    bucket.add("2026-10-04", record(when), other)
    words = [word for each in by for word in ("--by", each)]
    rows = document(run, "--month", "2026-10", *words)["rows"]
    assert [[row[each] for each in by] for row in rows] == expected


def test_users_are_those_that_requests_name(run: Run, bucket: Bucket) -> None:
    when = at("2026-10-04T10:00:00")
    bucket.add(
        "2026-10-04", *(record(when, user=user, cost_nano=user.count("a")) for user in ("anna", "otto"))
    )
    rows = document(run, "--month", "2026-10", "--by", "user")["rows"]
    assert [row["user"] for row in rows] == ["anna", "otto"]


def test_failed_and_cut_answers_are_counted(run: Run, bucket: Bucket) -> None:
    when = at("2026-10-04T10:00:00")
    bucket.add(
        "2026-10-04",
        record(when, status=0, basis="cut"),
        record(when, status=503, basis="none", cost_nano=0),
        record(when, status=200, basis="cut"),
    )
    [row] = document(run, "--month", "2026-10")["rows"]
    assert (row["requests"], row["failed"], row["cut"]) == (3, 2, 2)


def test_the_sum_has_no_rounding_of_its_own(run: Run, bucket: Bucket) -> None:
    # Sums of floats differ from the ledger, which counts whole nano-dollars.
    when = at("2026-10-04T10:00:00")
    costs = [10**7 + number * 3 + 1 for number in range(3000)]
    bucket.add("2026-10-04", *(record(when, cost_nano=cost) for cost in costs))
    assert document(run, "--month", "2026-10")["usd"] == sum(costs) / 10**9


def test_the_table_has_a_sum(run: Run, bucket: Bucket) -> None:
    bucket.add("2026-10-04", record(at("2026-10-04T10:00:00"), cost_nano=2_500_000_000))
    ran = run("usage", "door.yaml", "--month", "2026-10", COLUMNS="140")
    assert "search" in ran.out
    assert ran.out.splitlines()[-1] == "sum: 1 requests, 2.5000 USD"
    assert run("usage", "door.yaml", "--month", "2026-09").out == "there are no usage records\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--month", "2026-13"), "allowed is a month such as 2026-11"),
        (("--month", "2999-01"), "which has not begun in the time zone Europe/Berlin"),
        (("--day", "2026-10"), "allowed is a day such as 2026-11-29"),
        (("--day", "2026-10-04", "--month", "2026-10"), "allowed is one of them"),
    ],
)
def test_other_times_are_refused(run: Run, words: tuple[str, ...], expected: str) -> None:
    ran = run("usage", "door.yaml", *words)
    assert (ran.code, ran.out) == (1, "")
    assert expected in ran.err


def test_what_it_cannot_read_is_an_error(run: Run, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has no front door" in run("usage", "plain.yaml").err
    key = f"{USAGE_PREFIX}{USAGE_DAY}=2026-10-04/broken"
    bucket.client.put_object(Bucket=BUCKET, Key=key, Body=b'{"id": "r"}\n')
    assert f"s3://{BUCKET}/{key}:1: is no usage record" in run("usage", "door.yaml", "--month", "2026-10").err
    monkeypatch.setattr(usage_records, "MOST_BYTES", 5)
    assert "ask for one day with --day" in run("usage", "door.yaml", "--month", "2026-10").err


def test_a_field_of_a_newer_release_is_left_out(run: Run, bucket: Bucket) -> None:
    line = json.dumps({**record(at("2026-10-04T10:00:00")).to_values(), "newer": 1}).encode()
    bucket.client.put_object(Bucket=BUCKET, Key=f"{USAGE_PREFIX}{USAGE_DAY}=2026-10-04/a", Body=line)
    assert document(run, "--month", "2026-10")["requests"] == 1


def test_days_with_a_change_of_the_clock() -> None:
    now = at("2026-12-01T00:00:00")
    window = day_window("2026-10-25", BERLIN, now)
    assert (window.end.timestamp() - window.start.timestamp()) / 3600 == 25
    assert month_window(None, BERLIN, at("2026-11-30T23:30:00")).start.isoformat().startswith("2026-12-01")
    with pytest.raises(UserError, match="has not begun"):
        day_window("2026-12-02", BERLIN, now)


def test_node_costs_are_divided_by_what_teams_used_through_the_door() -> None:
    """Real-time tokens without a team, and sums that differ from the nodes' cost by more than 1 %."""
    start = at("2026-10-04T10:00:00")
    end = start + timedelta(hours=1)
    records = [
        *(record(start, output_tokens=36_000, cost_nano=10**9) for _ in range(5)),
        *(record(start, team="ads", output_tokens=18_000, cost_nano=10**8) for _ in range(5)),
        record(start - timedelta(seconds=1), output_tokens=10**9, cost_nano=10**12),
    ]
    shares = door_shares(of_time(records, start, end), {"qwen3-8b-main": "small"})

    def ask(expression: str, begin: float, last: float, step: float) -> tuple[MetricSeries, ...]:
        times = [begin + number * step for number in range(int((last - begin) / step) + 1)]
        figures = {"model_usd_per_hour": 12.0, "pool_usd_per_hour": 12.0, "tokens_per_second": 100.0}
        found = next((value for name, value in figures.items() if name in expression), None)
        if found is None or "pool_nodes" in expression:
            return ()
        return (MetricSeries({"model": "small"}, tuple((time, found) for time in times)),)

    found = attributed_costs(ask, "chat", batch={}, start=start, end=end, door=shares)
    # Jobs of batch that called the model itself, before they went through the door.
    earlier = attributed_costs(
        ask, "chat", batch={"small": {"ads": 90_000}}, start=start, end=end, door=shares
    )
    assert sum(row.output_tokens for row in earlier.rows if row.team == "ads") == 180_000
    # And those that are callers of the door: its records have them already.
    asked = [record(start, team="ads", model="batch:small", output_tokens=90_000)]
    by_door = door_shares(asked, {"qwen3-8b-main": "small"})
    later = attributed_costs(
        ask, "chat", batch={"small": {"ads": 90_000}}, start=start, end=end, door=by_door
    )
    assert sum(row.output_tokens for row in later.rows if row.team == "ads") == 90_000
    rows = {row.team: row for row in found.rows if row.model == "small"}
    # 360,000 tokens in an hour, 180,000 of them of search and 90,000 of ads.
    assert rows["search"].usd == pytest.approx(6.0)
    assert rows["ads"].usd == pytest.approx(3.0)
    assert rows[UNATTRIBUTED].usd == pytest.approx(3.0)
    assert found.rows_usd == pytest.approx(found.nodes_usd, rel=0.01)
    assert rows["search"].charged_usd == pytest.approx(5.0)
    assert rows["ads"].charged_usd == pytest.approx(0.5)
    assert rows[UNATTRIBUTED].charged_usd == 0.0
