"""Evaluates a metric alarm at a moment.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from inference_local.emulator.alarms import state_reasons
from inference_local.emulator.alarms.alarm_definition import AlarmDefinition, MetricStat
from inference_local.emulator.alarms.math_functions import Series
from inference_local.emulator.alarms.metric_math import MathInput, compute
from inference_local.emulator.alarms.missing_data import decide, evaluation_range
from inference_local.emulator.alarms.period_statistics import (
    Datapoint,
    MetricSample,
    has_few_samples,
    statistic_of,
)

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
        reason=state_reasons.text(alarm, decision, counted, breaches),
        reason_data=state_reasons.data(
            alarm, counted, starts, at_seconds if now_seconds is None else now_seconds
        ),
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
