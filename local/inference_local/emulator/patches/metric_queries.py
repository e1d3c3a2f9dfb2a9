"""Answers GetMetricData as CloudWatch does.

The emulator does not compute expressions, adds up metrics of all dimensions if a query has none, ignores
units, and returns the oldest values first
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ministack.services import cloudwatch

from inference_local.emulator.alarms.alarm_definition import MetricQuery, MetricStat, parse_query
from inference_local.emulator.alarms.math_functions import Series
from inference_local.emulator.alarms.metric_alarms import datapoint
from inference_local.emulator.alarms.metric_math import MathInput, compute
from inference_local.emulator.alarms.period_statistics import MetricSample

_get_plain = cloudwatch._get_metric_data


def apply() -> None:
    """Apply the patch."""
    cloudwatch._get_metric_data = _get_metric_data


def stored_samples(metric: MetricStat) -> list[MetricSample]:
    """Return all samples that the emulator has of a metric, with any unit.

    metric: The metric, with exactly its dimensions.
    """
    key = (metric.namespace, metric.name, cloudwatch._dims_key(dict(metric.dimensions)))
    return [_sample(point, *cloudwatch._point_stats(point)) for point in cloudwatch._metrics.get(key, ())]


def _sample(
    point: Mapping[str, Any], count: float, total: float, minimum: float, maximum: float
) -> MetricSample:
    return MetricSample(point["Timestamp"], count, total, minimum, maximum, point.get("Unit") or "None")


def _get_metric_data(params: Mapping[str, Any], content: Mapping[str, Any], *protocol: bool) -> Any:
    """Answer a request in CBOR or JSON. The emulator answers those of the old query protocol."""
    is_cbor, is_json = protocol
    if not is_cbor and not is_json:
        return _get_plain(params, content, *protocol)
    try:
        results = _results(content)
    except ValueError as error:
        return cloudwatch._error("ValidationError", str(error), 400, use_json=is_json, use_cbor=is_cbor)
    if is_json:
        return cloudwatch._json_ok({"MetricDataResults": results})
    encoded = [cloudwatch._cbor_metric_data_result(result) for result in results]
    return cloudwatch._cbor_ok({"MetricDataResults": encoded})


def _results(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = content.get("MetricDataQueries") or []
    queries = [parse_query(query) for query in given]
    begin, end = (cloudwatch._parse_ts(content.get(name)) for name in ("StartTime", "EndTime"))
    if begin is None or end is None or begin >= end:
        raise ValueError("StartTime must be before EndTime")
    series = _series(queries, given, begin, end)
    newest_first = content.get("ScanBy", "TimestampDescending") == "TimestampDescending"
    results = []
    for query, source in zip(queries, given, strict=True):
        if query.returns_data:
            points = sorted(series[query.id].items(), reverse=newest_first)
            results.append(
                {
                    "Id": query.id,
                    "Label": source.get("Label") or query.id,
                    "Timestamps": [cloudwatch._ts_iso(start) for start, _ in points],
                    "Values": [value for _, value in points],
                    "StatusCode": "Complete",
                }
            )
    return results


def _series(
    queries: Sequence[MetricQuery], given: Sequence[Mapping[str, Any]], begin: float, end: float
) -> dict[str, Series]:
    """Return the values of each query by its id."""
    metrics = {query.id: query.metric for query in queries if query.metric is not None}
    expressions = {query.id: query.expression for query in queries if query.expression is not None}
    found = {name: _of_metric(metric, begin, end) for name, metric in metrics.items()}
    periods = {metric.period_seconds for metric in metrics.values()}
    periods = periods or {int(query["Period"]) for query in given if query.get("Period")} or {60}
    if expressions and len(periods) > 1:
        raise ValueError(
            f"expressions over metrics of periods {sorted(periods)} are not emulated: use one period"
        )
    if expressions:
        [period] = periods
        request = MathInput(dict(found), expressions, period, _starts(begin, end, period))
        found.update({name: compute(expression, request) for name, expression in expressions.items()})
    return found


def _of_metric(metric: MetricStat, begin: float, end: float) -> Series:
    by_period: dict[float, list[MetricSample]] = {}
    period = metric.period_seconds
    for sample in stored_samples(metric):
        if sample.at < end:
            by_period.setdefault(sample.at // period * period, []).append(sample)
    points = (
        datapoint(metric, by_period[start], start)
        for start in _starts(begin, end, period)
        if start in by_period
    )
    return {point.start: point.value for point in points if point is not None}


def _starts(begin: float, end: float, period: int) -> list[float]:
    first = int(begin // period) * period
    return [float(start) for start in range(first, int(-(-end // 1)), period)]
