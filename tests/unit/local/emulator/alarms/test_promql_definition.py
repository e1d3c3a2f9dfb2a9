"""Alarms on PromQL: what is refused, and the event of a contributor as AWS's documents show it."""

from __future__ import annotations

from typing import Any

import pytest

from inference_local.emulator.alarms.promql_definition import (
    contributor_detail,
    contributor_id,
    parse_promql,
)
from inference_local.emulator.alarms.state_changes import AlarmState

CRITERIA = {"Query": "up == 0", "PendingPeriod": "60", "RecoveryPeriod": 300}


def properties(interval: Any = 60, **criteria: Any) -> dict[str, Any]:
    return {
        "EvaluationCriteria": {"PromQLCriteria": {**CRITERIA, **criteria}},
        "EvaluationInterval": interval,
    }


def test_numbers_of_templates_may_be_texts() -> None:
    alarm = parse_promql(properties("20"))
    assert (alarm.query, alarm.pending_seconds, alarm.recovery_seconds) == ("up == 0", 60, 300)
    assert alarm.every_seconds == 20


@pytest.mark.parametrize("interval", [None, 0, 5, 40, 90, 3660])
def test_an_interval_that_aws_refuses_is_refused(interval: int | None) -> None:
    with pytest.raises(ValueError, match=r"EvaluationInterval is .* multiple of 60 up to 3600"):
        parse_promql(properties(interval))


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"Query has 0 .*PendingPeriod is -1.*RecoveryPeriod is 86401"):
        parse_promql(properties(Query="", PendingPeriod=-1, RecoveryPeriod=86_401))


def test_the_event_of_a_contributor_has_the_fields_of_the_documented_one() -> None:
    """*Alarm Contributor Example* of cloudwatch-and-eventbridge.html, with another query language."""
    alarm = {"AlarmName": "Slow", "AlarmDescription": "It is slow.", **properties()}
    state = AlarmState("ALARM", "The query returned the time series", None, 1_764_596_524.919)
    detail = contributor_detail(alarm, {"node": "a"}, state)
    assert set(detail) == {"alarmName", "alarmContributor", "state", "configuration"}
    assert detail["alarmContributor"] == {"id": contributor_id({"node": "a"}), "attributes": {"node": "a"}}
    assert detail["state"] == {
        "value": "ALARM",
        "reason": "The query returned the time series",
        "timestamp": "2025-12-01T13:42:04.919+0000",
    }
    assert detail["configuration"] == {"metrics": [], "description": "It is slow."}


def test_the_id_is_that_of_the_labels_in_any_order() -> None:
    one, other = contributor_id({"a": "1", "b": "2"}), contributor_id({"b": "2", "a": "1"})
    assert one == other
    assert len(one) == 16
    assert one != contributor_id({"a": "1"})
