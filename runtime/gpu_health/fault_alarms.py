"""Function that handles the events of alarms on hardware: it opens cases and takes their first steps.

It is called by EventBridge, or by a queue of its events with ReportBatchItemFailures. An event that could
not be handled does not come again: `minute` reads raised alarms too, so nothing depends on one event.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.exceptions import BotoCoreError, ClientError

from gpu_health.case_progress import CaseProgress
from gpu_health.cell_repairs import READ_ONE_BY_ONE
from gpu_health.health_platform import health_platform
from gpu_health.health_run import begin
from gpu_health.watched_node import WatchedNode
from inference_contracts import health_names, operations_names
from inference_contracts.health_names import (
    ALARM_EVENT,
    ALARM_EVENT_SOURCE,
    CODE_LABEL,
    CONTRIBUTOR_EVENT,
    FAULT_KINDS,
    INSTANCE_LABELS,
    NODE_LABELS,
    FaultKind,
    hardware_alarm_prefix,
)
from inference_decisions.repairs.fault_rules import HardwareSignal
from inference_decisions.repairs.repair_case import ALARM_SOURCE, RepairCase
from operations import aws_clients
from operations.operations_errors import OperationsError

# What events of CloudWatch alarms say about nodes.
#
# An alarm on hardware is about all nodes: each of its contributors is one node and code, and EventBridge gets
# an event per contributor that changes its state
# (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html, *Multi Time
# Series Alarm*). One plain metric alarm per node would need ten thousand alarms. EventBridge and SQS deliver
# at least once and in any order
# (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event.html): an event may come twice,
# late, or after the next one.

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


#: Two reports of a contributor within this time are one: an event and a list may differ in their times.
_SAME_SECONDS: Final = 60.0
_logger = Logger(service=operations_names.HEALTH_SERVICE)
_metrics = Metrics(namespace=operations_names.METRIC_NAMESPACE, service=operations_names.HEALTH_SERVICE)


def handle(event: Mapping[str, Any], context: Any) -> Any:
    """Handle events of alarms.

    event: An event of EventBridge, or records of SQS whose bodies are such events.
    """
    del context
    if "Records" in event:
        processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        return process_partial_response(event=dict(event), record_handler=_handle_record, processor=processor)
    handle_event(event)
    return None


def _handle_record(record: SQSRecord) -> None:
    handle_event(record.json_body)


def handle_event(event: Mapping[str, Any]) -> None:
    """Handle one event.

    event: An event of EventBridge.
    Raises OperationsError if a service does not answer. The next minute's run does the same.
    """
    started, clock = time.monotonic(), time.time
    platform = health_platform()
    prefix = hardware_alarm_prefix(platform.cell.platform, platform.cell.name)
    try:
        report = alarm_report(event, prefix)
    except ValueError:
        _logger.exception("an event that cannot be read is dropped", extra={"event": event})
        return
    if not report.alarm:
        return
    run = begin(platform, clock)
    try:
        if report.signals and _are_known(report.signals, run.store.cases(clock())):
            return
        nodes = run.repairs.nodes()
        # All nodes in alarm count before the first of them is touched: they may have one cause.
        found = {
            **add_signals(run, report.signals, nodes, clock()),
            **add_signals(run, alarm_signals(report.alarm, prefix, clock()), nodes, clock()),
        }
        if len(found) > READ_ONE_BY_ONE:
            _logger.info(
                "many nodes are in alarm, so the minute's function decides", extra={"nodes": len(found)}
            )
            return
        for case in found.values():
            run.advance(case, [node for node in nodes if node.pool == case.pool], clock())
    finally:
        _count(run, time.monotonic() - started)


def _are_known(signals: Iterable[NodeSignal], cases: Iterable[RepairCase]) -> bool:
    """Return whether open cases know what signals say.

    The first event of an alarm brings the nodes of all its contributors, whose own events follow. To read all
    nodes for each of a hundred would be a hundred lists.
    """
    known = [
        (name, each)
        for case in cases
        if not case.ended
        for name in (case.node, case.instance)
        for each in case.evidence
    ]
    return all(
        any(
            name in (signal.node, signal.instance)
            and name
            and (each.kind, each.code) == (signal.kind, signal.code)
            and each.at >= signal.at - _SAME_SECONDS
            for name, each in known
        )
        for signal in signals
    )


def alarm_signals(alarm: str, prefix: str, now: float) -> Iterator[NodeSignal]:
    """Ask CloudWatch which nodes a raised alarm is about; it lists at most 100 of them.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarmContributors.html

    prefix: How the names of the cell's alarms on hardware begin.
    now: Seconds since the epoch.
    Raises OperationsError if CloudWatch does not answer.
    """
    query = {"AlarmName": alarm}
    while True:
        try:
            answer = aws_clients.client("cloudwatch").describe_alarm_contributors(**query)
        except (ClientError, BotoCoreError) as error:
            raise OperationsError(f"the contributors of {alarm} cannot be read: {error}") from error
        for each in answer["AlarmContributors"]:
            since = each.get("StateTransitionedTimestamp")
            at = now if since is None else since.timestamp()
            signal = signal_of(alarm, prefix, each["ContributorAttributes"], at)
            if signal is not None:
                yield signal
        if not answer.get("NextToken"):
            return
        query["NextToken"] = answer["NextToken"]


def add_signals(
    run: CaseProgress, signals: Iterable[NodeSignal], nodes: Iterable[WatchedNode], now: float
) -> Mapping[str, RepairCase]:
    """Add what signals prove to the cases of their nodes, and return the open ones, by identifiers of nodes.

    nodes: All nodes, as they are now.
    now: Seconds since the epoch.
    Raises OperationsError if a service does not answer.
    """
    known = {name: node for node in nodes for name in (node.instance, node.name)}
    found = dict[str, RepairCase]()
    for signal in signals:
        node = known.get(signal.node or signal.instance)
        if node is None:
            _logger.info(
                "a signal is about a node that is gone", extra={"node": signal.node or signal.instance}
            )
            continue
        evidence = run.repairs.platform.rules.evidence(
            HardwareSignal(
                kind=signal.kind, code=signal.code, node=node.name, at=signal.at, source=ALARM_SOURCE
            )
        )
        case = None if evidence is None else run.add(node, evidence, now)
        if case is not None:
            found[node.uid] = case
    return found


def _count(run: CaseProgress, seconds: float) -> None:
    cell = run.repairs.platform.cell
    _metrics.set_default_dimensions(platform=cell.platform, cell=cell.name)
    _metrics.add_metric(health_names.DECISION_SECONDS, MetricUnit.Seconds, seconds)
    for name, count in run.counts.items():
        _metrics.add_metric(name, MetricUnit.Count, count)
    _metrics.flush_metrics()
