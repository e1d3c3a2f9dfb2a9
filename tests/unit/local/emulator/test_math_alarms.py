"""Alarms on metric math are taken and make nothing; those on one metric stay the emulator's."""

from __future__ import annotations

from typing import Any

import pytest
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.resource_handlers.math_alarms import (
    RESOURCE_TYPE,
    register_math_alarms,
)

MATH = {
    "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    "EvaluationPeriods": 1,
    "Metrics": [{"Id": "sum", "Expression": "waiting + working"}],
    "Threshold": 4.5,
}
PLAIN = {"MetricName": "Errors", "Namespace": "AWS/Lambda"}


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The handlers of alarms, over ones that answer with what they were asked."""
    own = {
        "create": lambda *asked: ("own", {"asked": asked}),
        "update": lambda *asked: ("own", {"asked": asked}),
        "update_with_logical_id": True,
        "delete": lambda *_: None,
    }
    monkeypatch.setitem(_RESOURCE_HANDLERS, RESOURCE_TYPE, own)
    register_math_alarms()
    found: dict[str, Any] = _RESOURCE_HANDLERS[RESOURCE_TYPE]
    return found


def test_an_alarm_on_metric_math_has_a_name_and_an_arn_that_stay(handlers: dict[str, Any]) -> None:
    name, attributes = handlers["create"]("Alarm", MATH, "stack")
    assert attributes["Arn"].endswith(f":alarm:{name}")
    changed = {**MATH, "Threshold": 8.5}
    assert handlers["update"](name, MATH, changed, "stack", "Alarm") == (name, attributes)
    assert handlers["create"]("Other", MATH, "stack")[0] != name


def test_an_alarm_without_a_threshold_is_refused_as_aws_does(handlers: dict[str, Any]) -> None:
    incomplete = {key: value for key, value in MATH.items() if key != "Threshold"}
    with pytest.raises(ValueError, match="Alarm lacks Threshold"):
        handlers["create"]("Alarm", incomplete, "stack")


def test_other_alarms_are_the_emulators(handlers: dict[str, Any]) -> None:
    assert handlers["create"]("Alarm", PLAIN, "stack") == ("own", {"asked": ("Alarm", PLAIN, "stack")})
    asked = ("name", PLAIN, PLAIN, "stack", "Alarm")
    assert handlers["update"](*asked) == ("own", {"asked": asked})
