"""Alarms on PromQL are accepted without effect. The emulator handles the others."""

from __future__ import annotations

from typing import Any

import pytest
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.resource_handlers.recorded_alarms import (
    RESOURCE_TYPE,
    register_recorded_alarms,
)

PROMQL = {
    "EvaluationCriteria": {"PromQLCriteria": {"Query": "up == 0", "PendingPeriod": 60, "RecoveryPeriod": 60}},
    "EvaluationInterval": 60,
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
    register_recorded_alarms()
    found: dict[str, Any] = _RESOURCE_HANDLERS[RESOURCE_TYPE]
    return found


def test_a_recorded_alarm_has_a_name_and_an_arn_that_stay(handlers: dict[str, Any]) -> None:
    name, attributes = handlers["create"]("Alarm", PROMQL, "stack")
    assert attributes["Arn"].endswith(f":alarm:{name}")
    changed = {**PROMQL, "EvaluationInterval": 8}
    assert handlers["update"](name, PROMQL, changed, "stack", "Alarm") == (name, attributes)
    assert handlers["create"]("Other", PROMQL, "stack")[0] != name


def test_an_incomplete_alarm_is_refused_as_aws_does(handlers: dict[str, Any]) -> None:
    incomplete = {name: value for name, value in PROMQL.items() if name != "EvaluationInterval"}
    with pytest.raises(ValueError, match="Alarm lacks EvaluationInterval"):
        handlers["create"]("Alarm", incomplete, "stack")


def test_other_alarms_are_the_emulators(handlers: dict[str, Any]) -> None:
    assert handlers["create"]("Alarm", PLAIN, "stack") == ("own", {"asked": ("Alarm", PLAIN, "stack")})
    asked = ("name", PLAIN, PLAIN, "stack", "Alarm")
    assert handlers["update"](*asked) == ("own", {"asked": asked})
