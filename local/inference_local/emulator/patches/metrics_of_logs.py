"""Publishes the metrics of log events: those of metric filters and of the embedded metric format.

The emulator stores metric filters without effect and does not read embedded metrics
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/MonitoringLogData.html).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ministack.core.responses import AccountRegionScopedDict, error_response_json
from ministack.services import cloudwatch, cloudwatch_logs

from inference_local.emulator.alarms.filter_pattern import parse_pattern
from inference_local.emulator.alarms.log_metrics import (
    LogMetric,
    embedded_metrics,
    filtered_metric,
)

_forward_plain = cloudwatch_logs._fanout_to_subscription_filters
_put_plain = cloudwatch_logs._put_metric_filter
_MAX_DIMENSIONS = 3
_MINUTE = 60
#: Minutes for which a default value can still be replaced by that of a late event.
_REMEMBERED = 120
#: Log group, filter and number of the transformation to what was reported in a minute: the point of the
#: default value, or None after a match.
_reported = AccountRegionScopedDict()


def apply() -> None:
    """Apply the patch."""
    cloudwatch_logs._fanout_to_subscription_filters = _receive
    cloudwatch_logs._put_metric_filter = _put_metric_filter


def _receive(group: str, stream: str, events: Sequence[Mapping[str, Any]]) -> None:
    """Publish the metrics of new events, then forward the events."""
    for event in events:
        for metric in embedded_metrics(event.get("message", "")):
            _publish(metric)
    for (of_group, name), metric_filter in cloudwatch_logs._metric_filters.items():
        if of_group == group:
            _apply_filter(name, metric_filter, events)
    _forward_plain(group, stream, events)


def _apply_filter(name: str, metric_filter: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> None:
    pattern = parse_pattern(metric_filter["filterPattern"])
    for number, transformation in enumerate(metric_filter["metricTransformations"]):
        minutes: dict[int, list[LogMetric]] = {}
        for event in events:
            at = event["timestamp"] / 1000
            found = minutes.setdefault(int(at // _MINUTE), [])
            values = pattern(event.get("message", ""))
            metric = None if values is None else filtered_metric(transformation, values, at)
            if metric is not None:
                found.append(metric)
        key = (metric_filter["logGroupName"], name, number)
        for minute, metrics in sorted(minutes.items()):
            _report(key, transformation, minute, metrics)


def _report(
    key: tuple[str, str, int], transformation: Mapping[str, Any], minute: int, metrics: Sequence[LogMetric]
) -> None:
    """Publish the matches of a minute, or the default value if there were none before."""
    default = transformation.get("defaultValue")
    for metric in metrics:
        _publish(metric)
    if default is None:
        return
    reported = _reported.setdefault(key, {})
    space, name = transformation["metricNamespace"], transformation["metricName"]
    if metrics:
        former = reported.get(minute)
        if former is not None:
            bucket = cloudwatch._metric_bucket((space, name, ""))
            bucket[:] = [point for point in bucket if point is not former]
        reported[minute] = None
    elif minute not in reported:
        unit = transformation.get("unit") or "None"
        _publish(LogMetric(space, name, {}, unit, float(minute * _MINUTE), (float(default),)))
        reported[minute] = cloudwatch._metric_bucket((space, name, ""))[-1]
    for old in [each for each in reported if each < max(reported) - _REMEMBERED]:
        del reported[old]


def _publish(metric: LogMetric) -> None:
    cloudwatch._store_datum(
        metric.namespace,
        metric.name,
        dict(metric.dimensions),
        metric.at_seconds,
        metric.unit,
        None,
        list(metric.values),
        None,
        None,
    )


def _put_metric_filter(request: Mapping[str, Any]) -> Any:
    """Store a metric filter, or refuse one that CloudWatch refuses."""
    pattern = request.get("filterPattern", "")
    try:
        parse_pattern(pattern)
    except ValueError as error:
        return error_response_json("InvalidParameterException", str(error), 400)
    for transformation in request.get("metricTransformations") or ():
        dimensions = transformation.get("dimensions") or {}
        if dimensions and transformation.get("defaultValue") is not None:
            reason = "a transformation with dimensions cannot have a default value"
        elif len(dimensions) > _MAX_DIMENSIONS:
            reason = f"a transformation has at most {_MAX_DIMENSIONS} dimensions"
        elif dimensions and not pattern.strip().startswith(("{", "[")):
            reason = "only patterns of JSON or of fields can have dimensions"
        else:
            continue
        return error_response_json("InvalidParameterException", reason, 400)
    return _put_plain(request)
