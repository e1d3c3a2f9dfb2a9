"""Metrics that log events yield: by metric filters and by the embedded metric format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inference_local.emulator.alarms.filter_pattern import EventValues

_MOST_VALUES: Final = 100
_MAX_DEFINITIONS: Final = 100
_MAX_DIMENSIONS: Final = 30


@dataclass(frozen=True, slots=True)
class LogMetric:
    """Values of a metric from one log event."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    unit: str
    """`namespace`, `name`, `dimensions`, `unit`: The metric."""
    at_seconds: float
    """Time of the values in seconds since 1970."""
    values: tuple[float, ...]


def filtered_metric(
    transformation: Mapping[str, Any], values: EventValues, at_seconds: float
) -> LogMetric | None:
    """Return what a metric filter makes of an event that matches.

    https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_MetricTransformation.html

    transformation: What the filter publishes.
    at_seconds: Time of the event.
    Returns: None if the event lacks the value or a dimension, or the value is no number.
    """
    value = _number(transformation["metricValue"], values)
    dimensions: dict[str, str] = {}
    for name, selector in (transformation.get("dimensions") or {}).items():
        exists, found = values.look(selector)
        if not exists or isinstance(found, (dict, list)):
            return None
        dimensions[name] = found if isinstance(found, str) else json.dumps(found)
    if value is None:
        return None
    return LogMetric(
        transformation["metricNamespace"],
        transformation["metricName"],
        dimensions,
        transformation.get("unit") or "None",
        at_seconds,
        (value,),
    )


def embedded_metrics(message: str) -> Iterator[LogMetric]:
    """Yield the metrics of a message in the embedded metric format, none if it has another form.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    Metadata that Lambda writes before the JSON object is allowed.

    message: Message of a log event.
    """
    if '"_aws"' not in message:
        return
    try:
        root = json.loads(message[message.index("{") :])
    except ValueError:
        return
    metadata = root.get("_aws") if isinstance(root, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("Timestamp"), int):
        return
    for directive in metadata.get("CloudWatchMetrics") or ():
        yield from _directed(root, directive, metadata["Timestamp"] / 1000)


def _directed(
    root: Mapping[str, Any], directive: Mapping[str, Any], at_seconds: float
) -> Iterator[LogMetric]:
    definitions = directive.get("Metrics") or []
    for names in directive.get("Dimensions") or ():
        dimensions = {name: root.get(name) for name in names}
        if len(names) > _MAX_DIMENSIONS or not all(isinstance(each, str) for each in dimensions.values()):
            continue
        for definition in definitions[:_MAX_DEFINITIONS]:
            values = _values(root.get(definition["Name"]))
            if values:
                yield LogMetric(
                    directive["Namespace"],
                    definition["Name"],
                    {name: str(value) for name, value in dimensions.items()},
                    definition.get("Unit") or "None",
                    at_seconds,
                    values,
                )


def _values(target: object) -> tuple[float, ...]:
    """Return the numbers of a target, none if something else is among them."""
    given = target if isinstance(target, list) else [target]
    numbers = [each for each in given if isinstance(each, (int, float)) and not isinstance(each, bool)]
    if len(numbers) < len(given) or len(given) > _MOST_VALUES:
        return ()
    return tuple(float(each) for each in numbers)


def _number(given: object, values: EventValues) -> float | None:
    """Return a metric value: a number, or what the event has at a selector."""
    found: object = given
    if isinstance(given, str) and given.startswith("$"):
        _, found = values.look(given)
    try:
        return None if isinstance(found, bool) else float(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
