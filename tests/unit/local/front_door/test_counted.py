"""What was spent, counted from answers, records and the frontends' own counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference_contracts.door_configuration import (
    DoorConfiguration,
    DoorModel,
    DoorPrices,
    DoorTarget,
    DoorTeam,
)
from inference_contracts.usage_record import UsageRecord
from inference_local.front_door.counted_tokens import CountedTokens, tokens_of
from inference_local.front_door.door_client import AnswerKind, DoorAnswer
from inference_local.front_door.door_load import LoadResult
from inference_local.front_door.door_scenario import Asked, DoorScenario, Shed, Spender
from inference_local.front_door.front_door_outcome import FrontDoorOutcome
from inference_local.front_door.front_door_run import outcome_of

PAGE = """# TYPE dynamo_frontend_output_tokens_total counter
dynamo_frontend_output_tokens_total{model="a"} 40
dynamo_frontend_output_tokens_total{model="a:structured"} 2
dynamo_frontend_input_sequence_tokens_sum{model="a"} 478.0
dynamo_frontend_input_sequence_tokens_count{model="a"} 3
"""
MODEL = DoorModel(
    name="chat",
    aliases=(),
    targets=(DoorTarget("a-stable", "a", 90, None), DoorTarget("a-canary", "a", 10, None)),
    prices=DoorPrices(100, 400),
    teams=None,
    priority=50,
    context_length=8192,
    default_output_tokens=100,
)
SCENARIO = DoorScenario(
    configuration=DoorConfiguration("p", (MODEL,), (DoorTeam("shop", ()),), (), (), api_keys=True),
    replacements=(),
    steady=Asked("shop", "chat"),
    spender=Spender(Asked("research", "chat"), 20_000, is_daily=True),
    canary=Asked("shop", "chat"),
    shed=None,
    notes=("a note",),
)


def answer(identifier: str, kind: AnswerKind = "whole", **facts: Any) -> DoorAnswer:
    found = DoorAnswer(kind, "shop", "chat", 0.0, 1.0, "", identifier, 10, 4)
    return replace(found, **facts)


def record(identifier: str, target: str = "a-stable", **facts: Any) -> UsageRecord:
    found = UsageRecord(
        id=identifier,
        time="2026-11-29T12:00:00Z",
        team="shop",
        project=None,
        key="k",
        caller=None,
        model="chat",
        target=target,
        path="/v1/chat/completions",
        status=200,
        input_tokens=10,
        output_tokens=4,
        reserved_nano=9000,
        cost_nano=2600,
        basis="usage",
        milliseconds=5,
        stream=False,
        replica="door-1",
    )
    return replace(found, **facts)


def outcome(result: LoadResult, *records: UsageRecord, **facts: Any) -> FrontDoorOutcome:
    given = {"replicas": 3, "kills": (), "counters": None, "ledger_nano": 19_000, **facts}
    return outcome_of(SCENARIO, result, {each.id: each for each in records}, **given)


def test_tokens_are_read_from_a_page_of_metrics() -> None:
    assert tokens_of(PAGE) == CountedTokens(478, 42)


def test_what_was_spent_is_what_the_frontends_counted_between_two_moments() -> None:
    """What others sent before is no part of it, and what a killed replica lost is one."""
    none, stable, all_ = (
        {"a-stable": CountedTokens(*row), "a-canary": CountedTokens(5, 5)}
        for row in ((5, 5), (15, 10), (115, 35))
    )
    found = outcome(LoadResult(), counters=(none, stable, all_))
    assert found.spent_usd == pytest.approx((100 * 100 + 25 * 400) / 1e9)
    assert found.counted_usd == pytest.approx((10 * 100 + 5 * 400) / 1e9)
    assert found.overspend_usd == 0
    more = {**all_, "a-canary": CountedTokens(10, 5)}
    assert outcome(LoadResult(), counters=(none, stable, more)).overspend_usd == pytest.approx(500 / 1e9)


def test_what_went_past_the_door_is_not_expected_in_the_records() -> None:
    counters = ({"a-stable": CountedTokens()}, *[{"a-stable": CountedTokens(30, 12)}] * 2)
    direct = replace(answer(""), model="a")
    found = outcome(LoadResult(direct=[direct]), record("1"), record("2"), counters=counters)
    assert found.counted_usd == pytest.approx(2 * 2600 / 1e9) == found.recorded_usd


def test_what_a_killed_replica_did_not_record_is_told_apart() -> None:
    counters = (*[{"a-stable": CountedTokens()}] * 2, {"a-stable": CountedTokens(30, 12)})
    records = [record("1", team="research"), record("2", team="shop"), record("3", team="research")]
    found = outcome(LoadResult(), *records, counters=counters)
    assert found.unrecorded_usd == pytest.approx(2600 / 1e9)
    assert found.recorded_usd == pytest.approx(2600 / 1e9)


def test_what_was_charged_as_reserved_is_told_apart() -> None:
    cut = replace(record("1", team="research"), basis="reservation", cost_nano=9000)
    found = outcome(LoadResult(), cut, record("2", team="research"), record("3", team="shop"))
    assert found.reserved_usd == pytest.approx(9000 / 1e9)


def test_without_counters_the_clients_count() -> None:
    found = outcome(LoadResult(spending=[answer("1"), answer("2")]))
    assert found.spent_usd == pytest.approx(2 * 2600 / 1e9)
    assert found.counted_usd is None
    assert (found.ledger_usd, found.limit_usd) == (19_000 / 1e9, 20_000 / 1e9)


def test_a_refusal_is_due_only_where_one_is_expected() -> None:
    quota = answer("", "refused", reason="insufficient_quota")
    full = answer("", "refused", reason="rate_limit_exceeded")
    result = LoadResult(answers=[quota, full, answer("1")], spending=[quota], low=[full])
    found = outcome(result)
    assert (found.requests, found.failures, found.refused) == (3, 0, 2)
    assert found.refusals == {"insufficient_quota": 1, "rate_limit_exceeded": 1}
    stray = outcome(LoadResult(answers=[full]))
    assert (stray.failures, stray.failure_reasons) == (1, {"rate_limit_exceeded": 1})


def test_a_broken_stream_is_excused_by_a_kill_alone() -> None:
    broken = answer("", "broken", reason="connection broken", ended=50.0)
    assert outcome(LoadResult(answers=[broken]), kills=[49.0]).lost_with_replica == 1
    late = outcome(LoadResult(answers=[broken]), kills=[40.0])
    assert (late.lost_with_replica, late.failures, late.killed_replicas) == (0, 1, 1)


@pytest.mark.parametrize(
    ("facts", "charged"),
    [
        ({"basis": "cut", "output_tokens": 4}, 1),
        ({"basis": "cut", "output_tokens": 6}, 1),
        ({"basis": "cut", "output_tokens": 3}, 0),
        ({"basis": "cut", "input_tokens": 0}, 0),
        ({"basis": "reservation"}, 0),
        ({"basis": "none", "output_tokens": 4}, 0),
    ],
)
def test_a_cut_stream_is_charged_for_all_that_its_caller_got(facts: dict[str, Any], charged: int) -> None:
    cut = [answer("1", "cut"), answer("2", "cut")]
    found = outcome(LoadResult(answers=cut, cut=cut), record("1", **facts))
    assert (found.cut_streams, found.cut_streams_charged) == (2, charged)
    assert found.cut_tokens_charged == facts.get("output_tokens", 4)


def test_a_conversation_that_moves_is_seen() -> None:
    talks = {"a": [answer("1"), answer("2")], "b": [answer("3"), answer("4")], "c": [answer("5")]}
    found = outcome(
        LoadResult(conversations=talks),
        record("1"),
        record("2"),
        record("3"),
        record("4", "a-canary"),
        record("5", "a-canary"),
    )
    assert found.canary is not None
    assert (found.canary.conversations, found.canary.moved) == (3, 1)
    assert found.canary.by_target == {"a-stable": 1, "a-canary": 1}


def test_the_shed_is_counted_by_priority() -> None:
    shed = Shed(Asked("shop", "chat"), Asked("shop", "later"))
    low = [answer("1"), answer("2", "refused")]
    result = LoadResult(low=low, urgent=[answer("3")], low_retried=1)
    found = outcome_of(
        replace(SCENARIO, shed=shed), result, {}, replicas=3, kills=(), counters=None, ledger_nano=0
    )
    assert found.shed is not None
    assert (found.shed.low, found.shed.low_refused, found.shed.urgent_refused) == (2, 1, 0)
    assert found.notes == ("a note",)
