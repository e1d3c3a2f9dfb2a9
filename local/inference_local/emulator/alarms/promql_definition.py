"""Alarms on PromQL as CloudFormation gives them, and what an event says of one contributor.

- the properties:
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-cloudwatch-alarm-alarmpromqlcriteria.html
- the interval: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from inference_contracts.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, SECONDS_PER_MINUTE
from inference_local.emulator.alarms.state_changes import AlarmState, configuration

#: The property that an alarm on PromQL has and no other.
CRITERIA: Final = "EvaluationCriteria"
CONTRIBUTOR_EVENT_TYPE: Final = "CloudWatch Alarm Contributor State Change"
_PROMQL: Final = "PromQLCriteria"
_SHORT_INTERVALS: Final = (10, 20, 30)
_MAX_QUERY_LETTERS: Final = 10_000
_ID_LETTERS: Final = 16


@dataclass(frozen=True, slots=True)
class PromqlDefinition:
    """An alarm on PromQL."""

    query: str
    """PromQL. Each series of its answer is a contributor that breaches."""
    pending_seconds: int
    recovery_seconds: int
    """`pending_seconds`, `recovery_seconds`: How long a contributor must breach, and must not, until its
    state changes."""
    every_seconds: int
    """Time between two evaluations."""


def parse_promql(properties: Mapping[str, Any]) -> PromqlDefinition:
    """Return an alarm from the properties of `AWS::CloudWatch::Alarm`.

    properties: Properties with `EvaluationCriteria`. Numbers may be texts.
    Raises ValueError if AWS would refuse one of them. All are named.
    """
    criteria = properties[CRITERIA].get(_PROMQL) or {}
    found = PromqlDefinition(
        str(criteria.get("Query") or ""),
        int(criteria.get("PendingPeriod") or 0),
        int(criteria.get("RecoveryPeriod") or 0),
        int(properties.get("EvaluationInterval") or 0),
    )
    wrong = []
    if not 1 <= len(found.query) <= _MAX_QUERY_LETTERS:
        wrong.append(f"Query has {len(found.query)} letters: give 1 to {_MAX_QUERY_LETTERS}")
    for name, value in (("PendingPeriod", found.pending_seconds), ("RecoveryPeriod", found.recovery_seconds)):
        if not 0 <= value <= SECONDS_PER_DAY:
            wrong.append(f"{name} is {value}: give 0 to {SECONDS_PER_DAY}")
    full_minutes = (
        found.every_seconds % SECONDS_PER_MINUTE == 0
        and SECONDS_PER_MINUTE <= found.every_seconds <= SECONDS_PER_HOUR
    )
    if found.every_seconds not in _SHORT_INTERVALS and not full_minutes:
        wrong.append(
            f"EvaluationInterval is {found.every_seconds}: give 10, 20, 30 or a multiple of 60 up to "
            f"{SECONDS_PER_HOUR}"
        )
    if wrong:
        raise ValueError(f"an alarm on PromQL is refused: {'; '.join(wrong)}")
    return found


def contributor_id(attributes: Mapping[str, str]) -> str:
    """Return the id of a contributor, which is the same for the same attributes.

    AWS does not say how it makes the id; it has at most 16 letters
    (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_AlarmContributor.html).

    attributes: Labels of its series.
    """
    text = json.dumps(dict(attributes), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_LETTERS]


def contributor_detail(
    alarm: Mapping[str, Any], attributes: Mapping[str, str], state: AlarmState
) -> dict[str, Any]:
    """Return `detail` of the event of type `CONTRIBUTOR_EVENT_TYPE`.

    Its form is *Alarm Contributor Example* of
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html, which has
    no former state. The example is of a Metrics Insights alarm; AWS shows none of an alarm on PromQL.

    alarm: Parameters of the alarm.
    attributes: Labels of the contributor's series.
    state: Its new state.
    """
    return {
        "alarmName": alarm["AlarmName"],
        "alarmContributor": {"id": contributor_id(attributes), "attributes": dict(attributes)},
        "state": state.content(),
        "configuration": configuration(alarm),
    }
