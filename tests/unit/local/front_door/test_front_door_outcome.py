"""What counts as a fault of the front door, and what the report says about it."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from inference_local.front_door.front_door_outcome import (
    CanaryOutcome,
    FrontDoorOutcome,
    ShedOutcome,
    front_door_lines,
    short_front_door,
)
from inference_local.report import as_dict, print_report, render_html
from inference_local.report.terminal import print_summary
from tests.unit.local.report.conftest import document, report_of, summary  # noqa: F401 - fixtures
from tests.unit.local.report.samples import answered, result_of, run_of
from tests.unit.local.report.schema import SCHEMA

RUN = run_of(result_of(answered(0.0, 100.0)))
CANARY = CanaryOutcome("chat", 40, {"a-stable": 36, "a-canary": 4}, moved=0)
SHED = ShedOutcome("small", urgent=8, urgent_refused=0, low=10, low_refused=9, low_retried=9)
OUTCOME = FrontDoorOutcome(
    replicas=3,
    requests=700,
    failures=0,
    failure_reasons={},
    refused=25,
    refusals={"insufficient_quota": 16, "rate_limit_exceeded": 9},
    team="research",
    spent_usd=0.00198,
    ledger_usd=0.00199,
    limit_usd=0.002,
    overspend_usd=0.0,
    unrecorded_usd=0.00001,
    reserved_usd=0.0,
    recorded_usd=0.011,
    counted_usd=0.011,
    cut_streams=20,
    cut_streams_charged=20,
    cut_tokens_charged=400,
    cut_tokens_counted=402,
    killed_replicas=1,
    lost_with_replica=2,
    added_p50_ms=0.84,
    canary=CANARY,
    shed=SHED,
)
FAULTS: dict[str, dict[str, Any]] = {
    "requests failed": {"failures": 1, "failure_reasons": {"status 502": 1}},
    "more was spent than the limit": {"overspend_usd": 1e-9},
    "no budget refused": {"refusals": {"rate_limit_exceeded": 9}},
    "the budget refused long before its limit": {"spent_usd": 0.0018, "ledger_usd": 0.0018},
    "the ledger has less than was spent": {"ledger_usd": 0.00197},
    "cut streams were not charged": {"cut_streams_charged": 19},
    "cut streams were not charged to the chunk": {"cut_tokens_charged": 380},
    "records and models count differently": {"recorded_usd": 0.0108},
    "more was recorded than spent": {"unrecorded_usd": -0.00003},
    "conversations moved": {"canary": dataclasses.replace(CANARY, moved=1)},
    "urgent requests were refused": {"shed": dataclasses.replace(SHED, urgent_refused=1)},
    "nothing was refused while the model was full": {"shed": dataclasses.replace(SHED, low_refused=0)},
}


def test_a_good_run_has_no_fault() -> None:
    assert OUTCOME.faults == ()
    assert not dataclasses.replace(OUTCOME, canary=None, shed=None).is_bad


def test_a_run_without_a_budget_has_no_fault_and_says_nothing_of_one() -> None:
    """As with one team only: nobody's budget can be used up, so no replica is killed meanwhile."""
    nobody = dataclasses.replace(
        OUTCOME, team="", refusals={}, spent_usd=0.0, ledger_usd=0.0, limit_usd=0.0, killed_replicas=0
    )
    assert nobody.faults == ()
    said = " ".join([*front_door_lines(nobody, simulated=False), short_front_door(nobody, simulated=False)])
    assert "All teams: 0.011 USD in the usage records" in said
    assert not {"Budget", "killed", "limit"} & set(said.split())


@pytest.mark.parametrize("words", FAULTS)
def test_each_fault_is_named_alone(words: str) -> None:
    found = dataclasses.replace(OUTCOME, **FAULTS[words])
    assert found.faults == (words,)


@pytest.fixture
def report(report_of: Any) -> Any:  # noqa: F811
    return report_of(RUN, front_door=OUTCOME)


def test_the_section_is_data_and_absent_without_a_door(report: Any, report_of: Any) -> None:  # noqa: F811
    found = json.loads(json.dumps(as_dict(report), allow_nan=False))
    jsonschema.validate(found, SCHEMA)
    door = found["frontDoor"]
    names = {"requests", "failures", "refused", "spentUsd", "limitUsd", "overspendUsd", "cutStreams"}
    assert {*names, "cutStreamsCharged", "killedReplicas", "addedP50Ms"} <= door.keys()
    assert (door["addedP50Ms"], door["canary"]["byTarget"]["a-canary"]) == (0.84, 4)
    assert as_dict(report_of(RUN))["frontDoor"] is None


@pytest.mark.parametrize("width", [60, 120])
def test_the_terminal_says_it_all_at_any_width(report: Any, width: int) -> None:
    output = io.StringIO()
    print_report(report, Console(file=output, width=width))
    assert max(len(line) for line in output.getvalue().splitlines() if "curl" not in line) <= width
    text = " ".join(output.getvalue().split())
    for expected in (
        "Front door, 3 replicas: 700 requests, 0 failures, 25 refused (16 insufficient_quota, 9 rate",
        "Budget of team research (simulated): 0.00198 USD spent, 0.00199 USD in the ledger, limit 0.002 USD, "
        "0 USD beyond it.",
        "Other teams (simulated), before a replica was killed: 0.011 USD in the usage records, 0.011 USD by",
        "Cut streams: 20, 20 of them charged; 400 tokens in the usage records, 402 by the models' frontends.",
        "1 replica killed and started again while it answered: 2 requests lost with it, and the usage",
        "records of 0.00001 USD, which the ledger has.",
        "Canary of chat: 40 conversations, 36 at a-stable, 4 at a-canary, 0 moved.",
        "While small was full: 9 of 10 requests of the lowest priority refused, 0 of 8 of the highest; 9 an",
        "The door adds 0.84 ms to a request (p50)",
    ):
        assert expected in text
    assert "Not as it should be" not in text


def test_cut_answers_that_were_charged_as_reserved_are_no_fault() -> None:
    cut = dataclasses.replace(OUTCOME, unrecorded_usd=-0.00003, reserved_usd=0.00003)
    assert cut.faults == ()
    assert dataclasses.replace(cut, reserved_usd=0.000001).faults == ("more was recorded than spent",)


def test_no_negative_sum_is_shown() -> None:
    lines = front_door_lines(dataclasses.replace(OUTCOME, unrecorded_usd=-0.0000042), simulated=True)
    assert any("the usage records have 0.0000042 USD too much" in line for line in lines)
    assert not any("-0.0" in line for line in lines)


@pytest.mark.parametrize("width", [60, 120])
def test_the_short_report_has_a_line_of_the_door(report: Any, tmp_path: Any, width: int) -> None:
    output = io.StringIO()
    print_summary(report, tmp_path / "r", Console(file=output, width=width), ())
    assert max(len(line) for line in output.getvalue().splitlines() if str(tmp_path) not in line) <= width
    text = " ".join(output.getvalue().split())
    assert (
        "front door 700 requests, 0 failures, 25 refused; 0.00198 USD of 0.002 USD spent (simulated)" in text
    )


def test_the_page_has_the_section_and_a_fault_is_red(report: Any, report_of: Any) -> None:  # noqa: F811
    page = render_html(report, [RUN])
    assert "Cut streams: 20, 20 of them charged; 400 tokens" in page
    assert '<li class="bad">' not in page
    bad = dataclasses.replace(OUTCOME, overspend_usd=0.001, added_p50_ms=None, notes=("No shed: unknown.",))
    page = render_html(report_of(RUN, front_door=bad), [RUN])
    assert "Not as it should be: more was spent than the limit." in page
    assert '<li class="bad">No shed: unknown.' in page
    assert "was not measured" in page
