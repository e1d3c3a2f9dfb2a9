"""Parts of a replica: settings, refusals, metrics, delivery, and what replicas hear of each other."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from front_door.door_metrics import DoorMetrics
from front_door.known_usage import KnownUsage
from front_door.ledger_counters import Budgets
from front_door.refusals import DoorRefusal
from front_door.replicas import DEAD_SECONDS, Replicas
from front_door.settlement import PromptDensity
from front_door.usage_delivery import UsageDelivery

from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_ledger import Windows
from inference_contracts.door_settings import (
    DoorSettings,
    DoorSettingsError,
    as_environment,
    read_settings,
)
from inference_contracts.usage_record import UsageRecord
from tests.runtime.front_door.policy_process import a_configuration

SETTINGS = DoorSettings(
    replica="one",
    socket="/run/policy.sock",
    configuration="s3://bucket/key",
    envoy_folder="/run",
    access_log="/run/log",
    state_folder="/run",
    store_host="cache",
    store_port=6380,
    store_cluster=True,
    store_cache="cache",
    store_user="user",
)


def test_settings_come_back_from_the_environment() -> None:
    """Red if a field is written under a name that is not read."""
    assert read_settings(as_environment(SETTINGS)) == SETTINGS


def test_all_wrong_settings_are_named_at_once() -> None:
    """Red if somebody has to start the process once per mistake."""
    environment = {**as_environment(SETTINGS), "DOOR_STORE_PORT": "x", "DOOR_METRICS_ADDRESS": "9000"}
    environment |= {"DOOR_STORE_CLUSTER": "yes", "DOOR_STORE_USER": "", "DOOR_SOCKET": ""}
    with pytest.raises(DoorSettingsError) as wrong:
        read_settings(environment)
    names = ["SOCKET", "STORE_PORT", "STORE_CLUSTER", "STORE_USER", "METRICS_ADDRESS"]
    assert [name for name in names if f"DOOR_{name}" not in str(wrong.value)] == []


@pytest.mark.parametrize(
    ("retry_after", "again"), [(None, "false"), (5, None), (60, None), (61, "false"), (86400, "false")]
)
def test_clients_ask_again_only_if_it_helps_soon(retry_after: int | None, again: str | None) -> None:
    """Red if a client sleeps until the next month, or repeats a request that stays wrong."""
    headers = DoorRefusal(429, "rate_limit_exceeded", "wait", retry_after).headers()
    assert headers.get("x-should-retry") == again
    assert headers.get("retry-after") == (None if retry_after is None else str(retry_after))


def test_metrics_are_text_that_prometheus_reads() -> None:
    """Red if a metric has no type, or a label breaks its line."""
    metrics = DoorMetrics()
    metrics.count("requests", 3)
    metrics.refused("no_room")
    metrics.took(0.25)
    metrics.gauge("age_seconds", "Age", lambda: 1.5)
    metrics.gauges("shares", "Shares", lambda: [('name="a"', 0.5)])
    lines = metrics.text().decode().splitlines()
    assert {'door_refused_total{code="no_room"} 1', "door_requests_total 3", "door_age_seconds 1.5"} <= {
        *lines
    }
    assert {'door_shares{name="a"} 0.5', "door_decision_seconds_total 0.250000"} <= {*lines}
    metrics.answered(200, 0.0007)
    metrics.answered(0)
    lines = metrics.text().decode().splitlines()
    # A bucket holds what is below its bound.
    histogram = (
        'bucket{le="0.0005"} 0',
        'bucket{le="0.001"} 1',
        'bucket{le="+Inf"} 1',
        "count 1",
        "sum 0.000700",
    )
    assert {f"door_added_seconds_{each}" for each in histogram} <= {*lines}
    assert {'door_answers_total{class="2xx"} 1', 'door_answers_total{class="none"} 1'} <= {*lines}
    names = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    names = {re.sub("^(door_added_seconds)_(bucket|sum|count)$", r"\1", name) for name in names}
    assert names <= {line.split(" ")[2] for line in lines if line.startswith("# TYPE")}


def test_a_prompt_is_taken_for_the_densest_of_the_last_answers() -> None:
    """Red if the estimate for a request that nobody has logged is below what was seen."""
    density = PromptDensity()
    assert density.most("m", 1000) == 1000
    for tokens in (100, 300, 200):
        density.learn("m", 1000, tokens)
    assert 330 <= density.most("m", 1000) <= 331
    density.learn("m", 1000, 1000)
    assert density.most("m", 1000) == 1000
    assert density.most("other", 1000) == 1000


def test_a_passed_limit_counts_in_its_own_window() -> None:
    """Red if yesterday's or the last minute's use refuses, or a passed limit does not."""
    budgets = (
        DoorBudget("team", "red", nano_per_day=100, enforce="after"),
        DoorBudget("team", "blue", requests_per_minute=2, enforce="after"),
    )
    found = Budgets(a_configuration(*budgets))
    red, blue = (found.of_caller(team, None, None) for team in ("red", "blue"))
    usage, windows, now = KnownUsage(), Windows(86400, 172800, 0, 31 * 86400), 90_000.0
    usage.learn(red, [86400, 99, 0, 99, 0, 1500, 1, 1])
    assert usage.passed(red, windows, now) is None
    usage.learn(red, [86400, 100, 0, 100, 0, 1500, 1, 1])
    passed = usage.passed(red, windows, now)
    assert passed is not None
    assert (passed.kind, passed.used, passed.resets_in) == (1, 100, 82_800)
    assert [(counter.name, window, share) for counter, window, share in usage.shares(windows)] == [
        ("red", "day", 1.0)
    ]
    assert usage.passed(red, Windows(172800, 259200, 0, 31 * 86400), 180_000.0) is None
    usage.learn(blue, [86400, 0, 0, 0, 0, 1500, 2, 1])
    assert usage.passed(blue, windows, 1500 * 60.0) is not None
    assert usage.passed(blue, windows, 1501 * 60.0) is None


class Firehose:
    """Takes records, or some of them, or none."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.failures: list[str] = []
        self.last = ""

    def put_record_batch(self, **asked: Any) -> Any:
        records = asked["Records"]
        self.last = records[-1]["Data"].decode()
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "all":
            raise ClientError({"Error": {"Code": "ServiceUnavailableException"}}, "PutRecordBatch")
        rows = [{"ErrorCode": "x"} if failure == "first" and not n else {} for n in range(len(records))]
        self.taken += [json.loads(e["Data"])["id"] for e, row in zip(records, rows, strict=True) if not row]
        return {"RequestResponses": rows}


def record(identifier: str) -> UsageRecord:
    return UsageRecord(
        *(identifier, "2026-11-29T12:00:00.000Z", "red", None, None, None, "m", "t", "/v1", 200),
        *(1, 1, 1, 1, "usage", 1, False, "one"),
    )


def test_records_are_delivered_again_until_they_are_taken() -> None:
    """Red if a failure of Firehose loses records, or the log forgets lines that are not delivered."""
    firehose, metrics = Firehose(), DoorMetrics()
    delivery = UsageDelivery(firehose, "usage", metrics)
    firehose.failures = ["all", "first"]
    for position in (100, 200, 300):
        delivery.take(record(str(position)), position)
    assert delivery.finished(400) == 100
    assert not asyncio.run(delivery.deliver())
    assert (firehose.taken, delivery.finished(400)) == ([], 100)
    assert not asyncio.run(delivery.deliver())
    assert (firehose.taken, delivery.finished(400)) == (["200", "300"], 100)
    assert asyncio.run(delivery.deliver())
    assert (firehose.taken, delivery.finished(400)) == (["200", "300", "100"], 400)
    assert firehose.last == record("100").to_json() + "\n"


class Told:
    """A store that tells what replicas have written, with the ages that a test says."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, dict[str, int]]] = {}

    async def script(self, _text: str, _keys: list[str], words: list[str]) -> list[Any]:
        name, text = words
        self.rows[name] = (0, json.loads(text))
        rows = [(each.encode(), age, json.dumps(own).encode()) for each, (age, own) in self.rows.items()]
        return [1_790_000_000, *(part for row in rows for part in row)]


def test_only_replicas_that_are_heard_count_and_a_jump_of_the_stores_clock_kills_none() -> None:
    """Red if the load of a dead replica counts for ever, or a living one is taken for dead."""
    store, now, heard = Told(), [1000.0], dict[str, float]()

    def take(others: Mapping[str, float], _: int) -> None:
        heard.clear()
        heard.update(others)

    replicas = Replicas(store, "b", lambda: {"x": 2}, take, lambda: now[0])  # type: ignore[arg-type]
    store.rows = {"a": (1, {"x": 3}), "c": (5, {"x": 9}), "d": (DEAD_SECONDS + 1, {"x": 9})}
    asyncio.run(replicas.exchange())
    assert heard == {"x": 3}
    assert (replicas.live, replicas.is_first) == (("a", "b"), False)
    assert replicas.dead() == set()
    now[0] += 1
    store.rows |= {"a": (DEAD_SECONDS + 1, {}), "d": (0, {})}
    asyncio.run(replicas.exchange())
    assert replicas.dead() == set()
    now[0] += 4
    asyncio.run(replicas.exchange())
    assert replicas.dead() == {"a"}
    assert replicas.is_first
