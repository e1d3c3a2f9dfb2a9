"""What events of CloudWatch alarms say about nodes.

An alarm on hardware is about all nodes: each of its contributors is one node and code, and EventBridge gets
an event per contributor that changes its state
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html, *Multi Time
Series Alarm*). One plain metric alarm per node would need ten thousand alarms. EventBridge and SQS deliver
at least once and in any order
(https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event.html): an event may come twice,
late, or after the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from inference_contracts.health_names import (
    ALARM_EVENT,
    ALARM_EVENT_SOURCE,
    CODE_LABEL,
    CONTRIBUTOR_EVENT,
    FAULT_KINDS,
    INSTANCE_LABELS,
    NODE_LABELS,
    FaultKind,
)

_ALARM: Final = "ALARM"


@dataclass(frozen=True, slots=True)
class NodeSignal:
    """A report about the hardware of one node."""

    kind: FaultKind
    code: str
    node: str
    """Name of the node. Empty if only the instance is known."""
    instance: str
    """Identifier of the EC2 instance. Empty if only the name is known."""
    at: float
    """When the alarm saw it, in seconds since the epoch."""
    alarm: str


@dataclass(frozen=True, slots=True)
class AlarmReport:
    """What one event says."""

    alarm: str = ""
    """Name of the alarm. Empty if the event is not about an alarm on hardware that is raised."""
    signals: tuple[NodeSignal, ...] = ()
    """Nodes that it names."""

    @property
    def names_no_node(self) -> bool:
        """Whether the alarm is raised, and CloudWatch has to be asked for its contributors."""
        return bool(self.alarm) and not self.signals


def alarm_report(event: Mapping[str, Any], prefix: str) -> AlarmReport:
    """Return what an event says. Events that are not about hardware say nothing.

    event: The event as EventBridge delivers it.
    prefix: How the names of the cell's alarms on hardware begin (`hardware_alarm_prefix`).
    Raises ValueError if the event has another form than AWS documents.
    """
    if event.get("source") != ALARM_EVENT_SOURCE:
        return AlarmReport()
    if event.get("detail-type") not in (CONTRIBUTOR_EVENT, ALARM_EVENT):
        return AlarmReport()
    try:
        detail = event["detail"]
        name = str(detail["alarmName"])
        if kind_of(name, prefix) is None or detail["state"]["value"] != _ALARM:
            return AlarmReport()
        at = _seconds(detail["state"]["timestamp"])
        attributes = list(_attributes(detail))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the event of an alarm has another form than documented: {error!r}") from error
    signals = (signal_of(name, prefix, each, at) for each in attributes)
    return AlarmReport(name, tuple(signal for signal in signals if signal is not None))


def signal_of(alarm: str, prefix: str, attributes: Mapping[str, str], at: float) -> NodeSignal | None:
    """Return what a contributor or a metric's dimensions say. None if they name no node.

    prefix: How the names of the cell's alarms on hardware begin.
    attributes: Labels or dimensions.
    at: Seconds since the epoch.
    """
    kind = kind_of(alarm, prefix)
    node = next((attributes[label] for label in NODE_LABELS if attributes.get(label)), "")
    instance = next((attributes[label] for label in INSTANCE_LABELS if attributes.get(label)), "")
    if kind is None or not (node or instance):
        return None
    return NodeSignal(kind, str(attributes.get(CODE_LABEL, "*")), node, instance, at, alarm)


def kind_of(alarm: str, prefix: str) -> FaultKind | None:
    """Return the kind of fault that an alarm is about. None if it is not about hardware of this cell."""
    if not alarm.startswith(prefix):
        return None
    rest = alarm.removeprefix(prefix)
    return next((kind for kind in FAULT_KINDS if rest == kind or rest.startswith(f"{kind}-")), None)


def _attributes(detail: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    """Return the labels of the contributor, or the dimensions of the alarm's metrics."""
    if "alarmContributor" in detail:
        yield detail["alarmContributor"]["attributes"]
        return
    for metric in detail["configuration"].get("metrics", []):
        yield metric.get("metricStat", {}).get("metric", {}).get("dimensions", {})


def _seconds(moment: str) -> float:
    """Return a time as events write it, such as ``2025-12-01T13:42:04.919+0000``."""
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
