"""Function that runs each minute: compares workers, reads nodes, and advances all open cases."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from botocore.exceptions import BotoCoreError, ClientError

from gpu_health.case_progress import SHIFT_SECONDS, CaseProgress
from gpu_health.case_store import Observation
from gpu_health.cell_repairs import WorkerFigures
from gpu_health.fault_alarms import add_signals, alarm_signals
from gpu_health.health_platform import health_platform
from gpu_health.health_run import begin
from gpu_health.watched_node import WatchedNode, WatchedWorker
from gpu_health.worker_metrics import listed_gpus, read_windows
from inference_contracts import health_names as names
from inference_contracts import operations_names
from inference_contracts.health_names import (
    CASES_IN_FLIGHT,
    FaultKind,
    hardware_alarm_prefix,
)
from inference_decisions.repairs.peer_comparison import compare
from inference_decisions.repairs.repair_case import Evidence
from inference_decisions.repairs.slow_workers import Verdicts, judge
from inference_decisions.repairs.worker_windows import Numbers
from operations import aws_clients
from operations.operations_errors import MetricsError, OperationsError

_PEERS: Final = "peers"
_NODE: Final = "node"
_logger = Logger(service=operations_names.HEALTH_SERVICE)
_metrics = Metrics(namespace=operations_names.METRIC_NAMESPACE, service=operations_names.HEALTH_SERVICE)


# Metrics are shared by all calls of a process. The decorator writes and clears them after a failure too, so
# that the next call does not report them again
# (https://docs.aws.amazon.com/powertools/python/latest/core/metrics/#flushing-metrics).
@_metrics.log_metrics
def handle(event: Mapping[str, Any], context: Any) -> None:
    """Run once. A run that fails is not repeated: the next one is a minute later, and reads everything."""
    del event, context
    started, clock = time.monotonic(), time.time
    platform = health_platform()
    _metrics.set_default_dimensions(platform=platform.cell.platform, cell=platform.cell.name)
    run = begin(platform, clock)
    try:
        read_at = clock()
        nodes = run.repairs.nodes()
        run.recover(nodes, clock())
        run.give_back_orphans(clock())
        # Everything that is known counts before the first node is touched.
        _compare_workers(run, nodes, clock)
        _read_nodes(run, nodes, clock)
        _read_alarms(run, nodes, clock)
        _advance_all(run, nodes, read_at, clock)
        run.tell_held(nodes, clock())
    finally:
        _count_work(run)
    _count(run, clock(), time.monotonic() - started)


def _compare_workers(run: CaseProgress, nodes: Sequence[WatchedNode], clock: Callable[[], float]) -> None:
    """Open cases about workers that are worse than their peers, and note what moved together."""
    now, cell = clock(), run.repairs.platform.cell
    if not run.settings.slow_gpus:
        # Nothing is compared, so no shift is known, and missing metrics hold nothing back.
        run.observation = Observation(now, {})
        return
    workers = run.repairs.workers(nodes)
    if not workers:
        return
    try:
        read = read_windows(cell.metrics, cell.platform, workers, run.settings, now)
    except MetricsError as error:
        _logger.warning("metrics cannot be read, so no worker is judged", extra={"error": str(error)})
        _metrics.add_metric(operations_names.METRICS_UNREADABLE, MetricUnit.Count, 1)
        _count_age(run, now)
        return
    windows = read.windows
    comparison = compare(windows, run.settings.detection)
    verdicts = judge(windows, comparison, run.settings.detection)
    run.repairs.figures = _figures(workers, comparison.slower[-1], comparison.excess)
    shifts = {unit: at for unit, at in run.observation.shifts.items() if now - at < SHIFT_SECONDS}
    shifts |= {(shift.unit, shift.name): now for shift in verdicts.shifts}
    run.observation = Observation(read.end or run.observation.metrics_at, shifts)
    run.store.note_observation(run.observation, now)
    _count_age(run, now)
    _add_suspicious(run, workers, verdicts, at=read.end, now=now)
    _count_workers(verdicts)


def _count_age(run: CaseProgress, now: float) -> None:
    """Count how old the newest window is that workers reported. Some engines never report one."""
    if run.observation.metrics_at:
        age = now - run.observation.metrics_at
        _metrics.add_metric(names.METRICS_AGE_SECONDS, MetricUnit.Seconds, age)


def _add_suspicious(
    run: CaseProgress, workers: Sequence[WatchedWorker], verdicts: Verdicts, *, at: float, now: float
) -> None:
    for place in numpy.flatnonzero(verdicts.suspicious).tolist():
        code = str(verdicts.kind[place])
        kind: FaultKind = "slow_worker" if code == "slow" else "failing_worker"
        slower = float(verdicts.slower[place])
        evidence = Evidence(
            kind=kind,
            code=code,
            at=at,
            source=_PEERS,
            fatal=False,
            figure=slower if kind == "slow_worker" else run.settings.detection.excess_share,
        )
        run.add(workers[place].node, evidence, now)


def _figures(
    workers: Sequence[WatchedWorker], slower: Numbers, excess: Mapping[str, Numbers]
) -> dict[str, WorkerFigures]:
    """Return how far the worst worker of each node is from its peers."""
    figures = dict[str, WorkerFigures]()
    for place, worker in enumerate(workers):
        before = figures.get(worker.node.name, WorkerFigures())
        failing = [float(each[-1, place]) for each in excess.values() if numpy.isfinite(each[-1, place])]
        figures[worker.node.name] = WorkerFigures(
            slower=_worst(before.slower, [float(numpy.expm1(slower[place]))]),
            failing=_worst(before.failing, failing),
            peers=before.peers | {worker.peers},
        )
    return figures


def _worst(before: float | None, new: Sequence[float]) -> float | None:
    known = [*([] if before is None else [before]), *(each for each in new if numpy.isfinite(each))]
    return max(known, default=None)


def _read_nodes(run: CaseProgress, nodes: Sequence[WatchedNode], clock: Callable[[], float]) -> None:
    """Open cases about what the nodes of pools report: conditions, and fewer GPUs than they have."""
    now, platform = clock(), run.repairs.platform
    for node in nodes:
        for signal in node.signals() if node.pool else ():
            evidence = platform.rules.evidence(signal)
            if evidence is not None:
                run.add(node, evidence, now)
    expected = {node.name: node.gpus_expected(platform.accelerators) for node in nodes}
    equipped = [node for node in nodes if node.pool and expected[node.name]]
    try:
        cell = platform.cell
        listed = listed_gpus(cell.metrics, cell.platform, [node.name for node in equipped], now)
    except MetricsError as error:
        _logger.warning("GPUs cannot be counted", extra={"error": str(error)})
        listed = {}
    for node in equipped:
        offered = min(node.gpus_allocatable, listed.get(node.name, expected[node.name]))
        # A node that boots, or boots again, has no GPUs yet.
        started = max(node.created_at, node.ready_since)
        if offered < expected[node.name] and now - started >= run.settings.boot_seconds:
            run.add(
                node,
                Evidence(kind="gpus_missing", code="allocatable", at=now, source=_NODE, fatal=False),
                now,
            )


def _read_alarms(run: CaseProgress, nodes: Sequence[WatchedNode], clock: Callable[[], float]) -> None:
    """Read raised alarms: an event that was lost, or came while a service was away, is made up for."""
    cell = run.repairs.platform.cell
    prefix = hardware_alarm_prefix(cell.platform, cell.name)
    try:
        pages = aws_clients.client("cloudwatch").get_paginator("describe_alarms")
        alarms = [
            alarm["AlarmName"]
            for page in pages.paginate(AlarmNamePrefix=prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm"])
            for alarm in page["MetricAlarms"]
        ]
        for alarm in alarms:
            add_signals(run, alarm_signals(alarm, prefix, clock()), nodes, clock())
    except (ClientError, BotoCoreError, OperationsError) as error:
        _logger.warning("raised alarms cannot be read", extra={"error": str(error)})


def _advance_all(
    run: CaseProgress, nodes: Sequence[WatchedNode], read_at: float, clock: Callable[[], float]
) -> None:
    cases = [case for case in run.store.cases(clock()) if not case.ended]
    here = {node.name for node in nodes}
    run.repairs.read_dcgm([case.node for case in cases if case.node in here])
    run.repairs.read_together(cases, nodes, read_at)
    for case in cases:
        in_pool = [node for node in nodes if node.pool == case.pool]
        run.advance(case, in_pool, run.repairs.decided_at(case.node))


def _count_workers(verdicts: Verdicts) -> None:
    _metrics.add_metric(names.WORKERS_COMPARED, MetricUnit.Count, int(verdicts.decidable.sum()))
    _metrics.add_metric(names.WORKERS_SUSPICIOUS, MetricUnit.Count, int(verdicts.suspicious.sum()))
    _metrics.add_metric(names.UNITS_MOVED, MetricUnit.Count, len(verdicts.shifts))


def _count_work(run: CaseProgress) -> None:
    """Count what was done and asked, in a run that failed too."""
    queries = run.repairs.platform.cell.metrics
    figures = {
        operations_names.METRIC_QUERIES: queries.queries,
        operations_names.METRIC_SERIES: queries.series,
        **run.counts,
    }
    for name, count in figures.items():
        _metrics.add_metric(name, MetricUnit.Count, count)
    queries.queries = queries.series = 0


def _count(run: CaseProgress, now: float, seconds: float) -> None:
    open_cases = [case for case in run.store.cases(now) if not case.ended]
    in_flight = [case for case in open_cases if case.state in CASES_IN_FLIGHT]
    oldest = max((now - case.times.get("cordoned", now) for case in in_flight), default=0.0)
    figures: Mapping[str, tuple[MetricUnit, float]] = {
        operations_names.RUNS: (MetricUnit.Count, 1),
        operations_names.RUN_SECONDS: (MetricUnit.Seconds, seconds),
        operations_names.FROZEN: (MetricUnit.Count, int(run.settings.frozen)),
        names.CASES_OPEN: (MetricUnit.Count, len(open_cases)),
        names.CASES_IN_FLIGHT_METRIC: (MetricUnit.Count, len(in_flight)),
        names.CASES_HELD: (MetricUnit.Count, run.held),
        names.OLDEST_CASE_SECONDS: (MetricUnit.Seconds, oldest),
    }
    for name, (unit, value) in figures.items():
        _metrics.add_metric(name, unit, value)
