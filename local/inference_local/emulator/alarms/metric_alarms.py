"""Evaluates a metric alarm at a moment.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from inference_local.emulator.alarms.alarm_definition import COMPARISONS, AlarmDefinition, MetricStat
from inference_local.emulator.alarms.math_functions import Series
from inference_local.emulator.alarms.metric_math import MathInput, compute
from inference_local.emulator.alarms.missing_data import (
    ALARM,
    INSUFFICIENT_DATA,
    StateDecision,
    decide,
    evaluation_range,
)
from inference_local.emulator.alarms.period_statistics import (
    Datapoint,
    MetricSample,
    has_few_samples,
    statistic_of,
)

# Why an alarm has its state, in the words and the JSON of CloudWatch.
#
# Words: the events of
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html.

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


_BREACHES: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
#: Returns the samples of a metric with any unit from a time until before another, in seconds since 1970.
Source = Callable[[MetricStat, float, float], Sequence[MetricSample]]


@dataclass(frozen=True, slots=True)
class AlarmEvaluation:
    """The state that an alarm has after an evaluation."""

    state: str
    reason: str
    """Why, as CloudWatch says it."""
    reason_data: str
    """The same as JSON."""


def evaluate(
    alarm: AlarmDefinition, source: Source, at_seconds: float, *, now_seconds: float | None = None
) -> AlarmEvaluation | None:
    """Evaluate an alarm.

    The last period ends at the last full minute, or at the last ten seconds for shorter periods.

    source: The samples.
    at_seconds: The moment, in seconds since 1970. Samples from then on are not read.
    now_seconds: The time that the reason gives for the evaluation, the moment itself by default.
    Returns: None if the alarm keeps its state.
    Raises ValueError if an expression cannot be computed.
    """
    starts = _starts(alarm, at_seconds)
    points = _points(alarm, source, starts)
    if alarm.ignores_few_samples and _has_few(alarm, [point for point in points if point]):
        return None
    breaches = _BREACHES[alarm.comparison]
    decision = decide(
        [None if point is None else breaches(point.value, alarm.threshold) for point in points],
        evaluation_periods=alarm.evaluation_periods,
        datapoints_to_alarm=alarm.datapoints_to_alarm,
        treatment=alarm.treatment,
    )
    if decision.state is None:
        return None
    counted = [point for position in decision.counted if (point := points[position]) is not None]
    return AlarmEvaluation(
        state=decision.state,
        reason=text(alarm, decision, counted, breaches),
        reason_data=data(alarm, counted, starts, at_seconds if now_seconds is None else now_seconds),
    )


def newest_value(alarm: AlarmDefinition, source: Source, at_seconds: float) -> float | None:
    """Return the newest data point that an alarm compares, None if all in its evaluation range are missing.

    at_seconds: The moment, in seconds since 1970.
    """
    points = _points(alarm, source, _starts(alarm, at_seconds))
    return next((point.value for point in reversed(points) if point is not None), None)


def _starts(alarm: AlarmDefinition, at_seconds: float) -> list[float]:
    """Return the begin of each period that is evaluated at a moment."""
    step = min(alarm.every_seconds, 60)
    end = at_seconds // step * step
    count = evaluation_range(alarm.evaluation_periods)
    return [end - alarm.period_seconds * back for back in range(count, 0, -1)]


def _points(alarm: AlarmDefinition, source: Source, starts: Sequence[float]) -> list[Datapoint | None]:
    watched = alarm.watched
    if watched.metric is not None:
        return [_point(watched.metric, source, start) for start in starts]
    metrics: dict[str, Series] = {}
    for query in alarm.queries:
        if query.metric is not None:
            found = (_point(query.metric, source, start) for start in starts)
            metrics[query.id] = {point.start: point.value for point in found if point is not None}
    expressions = {query.id: query.expression for query in alarm.queries if query.expression is not None}
    given = MathInput(metrics, expressions, alarm.period_seconds, starts)
    series = compute(expressions[watched.id], given)
    return [Datapoint(start, series[start]) if start in series else None for start in starts]


def datapoint(metric: MetricStat, samples: Sequence[MetricSample], start: float) -> Datapoint | None:
    """Return the data point of a period, None if it is missing.

    samples: Its samples in the period, with any unit.
    start: Start of the period, in seconds since 1970.
    """
    of_unit = [sample for sample in samples if metric.unit is None or sample.unit == metric.unit]
    value = statistic_of(of_unit, metric.statistic)
    return None if value is None else Datapoint(start, value, sum(sample.count for sample in of_unit))


def _point(metric: MetricStat, source: Source, start: float) -> Datapoint | None:
    return datapoint(metric, source(metric, start, start + metric.period_seconds), start)


def _has_few(alarm: AlarmDefinition, points: Sequence[Datapoint]) -> bool:
    metric = alarm.watched.metric
    counted = points[-alarm.evaluation_periods :]
    samples = sum(point.samples or 0.0 for point in counted)
    return metric is not None and bool(counted) and has_few_samples(metric.statistic, samples)
