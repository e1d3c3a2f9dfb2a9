"""Why an alarm has its state, in the words and the JSON of CloudWatch.

Words: the events of
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from inference_local.emulator.alarms.alarm_definition import COMPARISONS, AlarmDefinition
from inference_local.emulator.alarms.missing_data import ALARM, INSUFFICIENT_DATA, StateDecision
from inference_local.emulator.alarms.period_statistics import Datapoint

_TREATED = {"breaching": "Breaching", "notBreaching": "NonBreaching"}


def moment(seconds: float) -> str:
    """Return a time as events of alarms write it.

    seconds: The time in seconds since 1970.
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000"


def text(
    alarm: AlarmDefinition,
    decision: StateDecision,
    counted: Sequence[Datapoint],
    breaches: Callable[[float, float], bool],
) -> str:
    """Return the reason of a state.

    counted: The data points that decided, in order.
    breaches: Whether a value breaches a threshold.
    """
    if decision.state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {_many(decision.filled, 'datapoint')} {_was(decision.filled)} unknown."
    if decision.filled and alarm.treatment in _TREATED:
        return _filled(alarm, decision, counted)
    is_alarm = decision.state == ALARM
    shown = [point for point in counted if breaches(point.value, alarm.threshold) == is_alarm]
    words = ", ".join(f"{point.value} ({_short(point.start)})" for point in reversed(shown))
    crossed = f"{_was(len(shown))}{'' if is_alarm else ' not'} {COMPARISONS[alarm.comparison]}"
    threshold = f"the threshold ({alarm.threshold})"
    if not alarm.says_datapoints_to_alarm:
        return f"Threshold Crossed: {_many(len(shown), 'datapoint')} [{words}] {crossed} {threshold}."
    minimum = alarm.datapoints_to_alarm
    if not is_alarm:
        minimum = alarm.evaluation_periods - alarm.datapoints_to_alarm + 1
    change = "OK -> ALARM" if is_alarm else "ALARM -> OK"
    return (
        f"Threshold Crossed: {len(shown)} out of the last {len(counted)} datapoints [{words}] {crossed} "
        f"{threshold} (minimum {_many(minimum, 'datapoint')} for {change} transition)."
    )


def data(
    alarm: AlarmDefinition, counted: Sequence[Datapoint], starts: Sequence[float], now_seconds: float
) -> str:
    """Return the reason as JSON.

    starts: Starts of the periods of the evaluation range.
    now_seconds: Time of the evaluation, in seconds since 1970.
    """
    metric = alarm.watched.metric
    begin = counted[0].start if counted else starts[-1]
    content: dict[str, Any] = {
        "version": "1.0",
        "queryDate": moment(now_seconds),
        **({"startDate": moment(begin)} if counted else {}),
        **({"statistic": metric.statistic} if metric else {}),
        **({"unit": metric.unit} if metric and metric.unit else {}),
        "period": alarm.period_seconds,
        "recentDatapoints": [point.value for point in counted],
        "threshold": alarm.threshold,
        "evaluatedDatapoints": [
            {
                "timestamp": moment(point.start),
                **({} if point.samples is None else {"sampleCount": point.samples}),
                "value": point.value,
            }
            for point in reversed(counted)
        ],
    }
    return json.dumps(content, separators=(",", ":"))


def _filled(alarm: AlarmDefinition, decision: StateDecision, counted: Sequence[Datapoint]) -> str:
    received = f"{_many(len(counted), 'datapoint')} {_was(len(counted))} received"
    if not counted:
        received = "no datapoints were received"
    return (
        f"Threshold Crossed: {received} for {_many(alarm.evaluation_periods, 'period')} and "
        f"{_many(decision.filled, 'missing datapoint')} {_was(decision.filled)} treated as "
        f"[{_TREATED[alarm.treatment]}]."
    )


def _short(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%d/%m/%y %H:%M:%S")


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
