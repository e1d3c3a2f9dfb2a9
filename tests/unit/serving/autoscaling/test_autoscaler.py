"""Each branch of the decision of KEDA and the HorizontalPodAutoscaler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from inference_blueprints.serving.autoscaling.autoscaler import Autoscaler, Decision
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from tests.unit.serving.autoscaling.scaled_objects import TOKENS, WORKDAY, manifest

#: Monday, 2026-11-23, 06:59:30 in Berlin.
_BEFORE_WORK = 1795413570.0
_HALF_RATED = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}
_TWO_A_MINUTE = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}


def autoscaler(**changes: Any) -> Autoscaler:
    """An autoscaler for a manifest with changes."""
    return Autoscaler(ScaledObject.read(manifest(**changes)))


def follow(
    found: Autoscaler,
    values: Iterable[float | None],
    *,
    start: int,
    step_seconds: float = 15.0,
    begin_seconds: float = 0.0,
    ready: int | None = None,
) -> list[int]:
    """Return the numbers that follow from a series of values, one each 15 seconds."""
    current, numbers = start, []
    for index, value in enumerate(values):
        decision = found.decide(
            begin_seconds + index * step_seconds,
            current,
            current if ready is None else ready,
            {"tokens": value},
        )
        current = decision.desired
        numbers.append(current)
    return numbers


@pytest.mark.parametrize(
    ("value", "number"),
    [
        pytest.param(200.0, 2, id="on target"),
        pytest.param(220.0, 2, id="a tenth above is close enough"),
        pytest.param(220.1, 3, id="more than a tenth above"),
        pytest.param(700.0, 7, id="as many as the value needs"),
        pytest.param(700.1, 8, id="rounded up"),
        pytest.param(9000.0, 12, id="never above the largest number"),
        pytest.param(-5.0, 2, id="negative counts as 0, never below the smallest number"),
    ],
)
def test_up(value: float, number: int) -> None:
    assert follow(autoscaler(), [value], start=2) == [number]


@pytest.mark.parametrize(("value", "number"), [(900.0, 10), (899.9, 9), (150.0, 2), (0.0, 2)])
def test_down(value: float, number: int) -> None:
    """The first number of workers is a recommendation, but the window is over at once."""
    assert follow(autoscaler(), [value], start=10) == [number]


def test_thousandths() -> None:
    """1.1 / 0.1 is 11, not a little more."""
    small = {**TOKENS, "metadata": {**TOKENS["metadata"], "threshold": "0.1"}}
    assert follow(autoscaler(triggers=[small]), [1.1], start=2) == [11]


def test_down_waits_for_the_window() -> None:
    found = autoscaler(scale_down={"stabilizationWindowSeconds": 60})
    assert follow(found, [1000, 200, 200, 200, 200, 200], start=10) == [10, 10, 10, 10, 2, 2]


def test_a_peak_within_the_window_holds_the_number() -> None:
    found = autoscaler(scale_down={"stabilizationWindowSeconds": 60})
    values = [1000, 200, 200, 600, 200, 200, 200, 200]
    assert follow(found, values, start=10) == [10, 10, 10, 10, 6, 6, 6, 2]


def test_up_waits_for_the_window() -> None:
    found = autoscaler(scale_up={"stabilizationWindowSeconds": 30})
    assert follow(found, [200, 800, 800, 800], start=2) == [2, 2, 8, 8]


def test_percent_of_the_number_at_the_begin_of_the_period() -> None:
    found = autoscaler(scale_down=_HALF_RATED)
    assert follow(found, [200] * 6, start=12) == [6, 6, 6, 6, 3, 3]


def test_one_worker_can_always_go() -> None:
    found = autoscaler(
        minimum=1, scale_down={"policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]}
    )
    assert follow(found, [0, 0, 0], start=3) == [2, 1, 1]


def test_pods_in_a_period() -> None:
    found = autoscaler(scale_up=_TWO_A_MINUTE)
    assert follow(found, [1200] * 6, start=2) == [4, 4, 4, 4, 6, 6]


@pytest.mark.parametrize(("choice", "number"), [("Max", 8), ("Min", 4), ("Disabled", 2)])
def test_choice_between_policies(choice: str, number: int) -> None:
    policies = [
        {"type": "Pods", "value": 2, "periodSeconds": 15},
        {"type": "Percent", "value": 300, "periodSeconds": 15},
    ]
    found = autoscaler(scale_up={"policies": policies, "selectPolicy": choice})
    assert follow(found, [1200], start=2) == [number]


def test_workers_that_went_may_come_back_beyond_the_policy() -> None:
    """The period's first number counts: what went within it does not use up the policy."""
    found = autoscaler(scale_up=_TWO_A_MINUTE)
    assert follow(found, [200, 1200], start=10) == [2, 12]


def test_rules_that_the_manifest_leaves_out() -> None:
    """Four workers or twice as many in 15 seconds, and five minutes before workers go."""
    found = autoscaler(minimum=1, scale_up={"policies": []}, scale_down={"policies": []})
    assert follow(found, [1200, 1200], start=1) == [5, 10]


def test_missing_metric_changes_nothing() -> None:
    assert follow(autoscaler(), [1000, None, None, None, None, 200], start=10) == [10, 10, 10, 10, 10, 2]


@pytest.mark.parametrize(("ignored", "numbers"), [("true", [2]), ("false", [10])])
def test_answer_without_a_number(ignored: str, numbers: list[int]) -> None:
    """KEDA's default takes it as 0, and workers go."""
    trigger = {**TOKENS, "metadata": {**TOKENS["metadata"], "ignoreNullValues": ignored}}
    assert follow(autoscaler(triggers=[trigger]), [math.nan], start=10) == numbers


def test_with_a_missing_metric_workers_come_but_do_not_go() -> None:
    queue = {**TOKENS, "name": "queue"}
    found = autoscaler(triggers=[TOKENS, queue])
    assert found.decide(0, 10, 10, {"tokens": 200.0, "queue": None}).desired == 10
    assert found.decide(15, 10, 10, {"tokens": 1150.0, "queue": None}).desired == 12


@pytest.mark.parametrize(
    ("behaviour", "start", "number"),
    [
        ("static", 10, 6),
        ("currentReplicas", 10, 10),
        ("currentReplicasIfHigher", 10, 10),
        ("currentReplicasIfHigher", 3, 6),
        ("currentReplicasIfLower", 10, 6),
        ("currentReplicasIfLower", 3, 3),
    ],
)
def test_fallback(behaviour: str, start: int, number: int) -> None:
    """KEDA's own reading and the controller's both count: three are over with the second decision."""
    fallback = {"failureThreshold": 3, "replicas": 6, "behavior": behaviour}
    found = autoscaler(fallback=fallback)
    assert follow(found, [None, None, None], start=start) == [start, number, number]


def test_fallback_close_to_the_number_changes_nothing() -> None:
    """The fallback is a value like any other: within the tolerance the number stays."""
    found = autoscaler(fallback={"failureThreshold": 1, "replicas": 11, "behavior": "static"})
    assert follow(found, [None, None, None], start=10) == [10, 10, 10]


def test_a_reading_ends_the_count_of_failures() -> None:
    found = autoscaler(fallback={"failureThreshold": 3, "replicas": 6, "behavior": "static"})
    assert follow(found, [None, 1000, None, 1000, None], start=10) == [10] * 5


def test_keda_gone_changes_nothing() -> None:
    found = autoscaler(triggers=[TOKENS, WORKDAY], fallback={"failureThreshold": 1, "replicas": 6})
    decisions = [found.decide(15 * n, 3, 3, {"tokens": 900.0}, keda_answers=False) for n in range(5)]
    assert {decision.desired for decision in decisions} == {3}
    assert decisions[0].reason == "no value of tokens, workday"


def test_schedule_is_a_floor() -> None:
    found = autoscaler(triggers=[TOKENS, WORKDAY])
    assert follow(found, [200, 200, 200, 800, 200], start=2, begin_seconds=_BEFORE_WORK) == [2, 2, 6, 8, 6]


def test_the_schedule_ends() -> None:
    found = autoscaler(triggers=[TOKENS, WORKDAY])
    begin = _BEFORE_WORK + 14 * 3600
    assert follow(found, [200, 200, 200], start=6, begin_seconds=begin) == [6, 6, 2]


@pytest.mark.parametrize(("start", "number"), [(1, 2), (0, 2), (15, 12)])
def test_outside_of_the_range_no_metric_is_asked(start: int, number: int) -> None:
    decision = autoscaler().decide(0, start, start, {"tokens": 1000.0})
    assert decision == Decision(desired=number, reason="back in the range 2 to 12")


def test_value_counts_ready_workers() -> None:
    """A share times the ready workers: those that still start carry nothing."""
    share = {**TOKENS, "metricType": "Value", "metadata": {**TOKENS["metadata"], "threshold": "0.5"}}
    assert follow(autoscaler(triggers=[share]), [0.9], start=8, ready=5) == [9]
    assert follow(autoscaler(triggers=[share]), [0.54], start=8, ready=5) == [8]


def test_average_value_does_not_ask_which_workers_are_ready() -> None:
    assert follow(autoscaler(), [700.0], start=4, ready=0) == [7]


@pytest.mark.parametrize(("ready", "number"), [(5, 6), (0, 8)])
def test_fallback_of_a_value_needs_a_ready_worker(ready: int, number: int) -> None:
    share = {**TOKENS, "metricType": "Value"}
    found = autoscaler(triggers=[share], fallback={"failureThreshold": 1, "replicas": 6})
    assert follow(found, [None], start=8, ready=ready) == [number]


def test_reason_and_readings() -> None:
    found = autoscaler(triggers=[TOKENS, {**TOKENS, "name": "queue"}])
    decision = found.decide(0, 2, 2, {"tokens": 500.0, "queue": 700.0})
    readings: Mapping[str, int | None] = {name: each.proposed for name, each in decision.per_trigger.items()}
    assert (decision.reason, readings) == ("queue wants 7", {"tokens": 5, "queue": 7})


def test_reason_names_the_limit() -> None:
    found = autoscaler(scale_up=_TWO_A_MINUTE, scale_down={"stabilizationWindowSeconds": 60})
    assert found.decide(0, 2, 2, {"tokens": 900.0}).reason == "9 wanted, limited by the policy"
    assert (
        found.decide(15, 4, 4, {"tokens": 200.0}).reason == "2 wanted, held at 4 by the stabilisation window"
    )
