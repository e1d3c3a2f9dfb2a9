"""Function that handles the events of alarms on hardware: it opens cases and takes their first steps.

It is called by EventBridge, or by a queue of its events with ReportBatchItemFailures. An event that could
not be handled does not come again: `minute` reads raised alarms too, so nothing depends on one event.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.exceptions import BotoCoreError, ClientError

from gpu_health.case_progress import CaseProgress
from gpu_health.hardware_events import NodeSignal, alarm_report, signal_of
from gpu_health.health_platform import health_platform
from gpu_health.health_run import begin
from gpu_health.watched_node import WatchedNode
from inference_contracts import health_names, operations_names
from inference_contracts.health_names import hardware_alarm_prefix
from inference_decisions.repairs.fault_rules import HardwareSignal
from inference_decisions.repairs.repair_case import RepairCase
from operations import aws_clients
from operations.operations_errors import OperationsError

_SOURCE: Final = "alarm"
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
        nodes = run.repairs.nodes()
        named = add_signals(run, report.signals, nodes, clock())
        # All nodes in alarm count before the first of them is touched: they may have one cause.
        others = add_signals(run, alarm_signals(report.alarm, prefix, clock()), nodes, clock())
        for case in (others if report.names_no_node else named).values():
            run.advance(case, [node for node in nodes if node.pool == case.pool], clock())
    finally:
        _count(run, time.monotonic() - started)


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
            HardwareSignal(kind=signal.kind, code=signal.code, node=node.name, at=signal.at, source=_SOURCE)
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
