"""The function `shift`, which EventBridge Scheduler calls each minute.

It reads the variables of `operations_names`, ``SHIFT_CONFIGURATION`` and ``SHIFT_BATCH_TABLE``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from capacity_shift.cell_reader import CellReader, DemandReader
from capacity_shift.cluster_numbers import ClusterNumbers, KubernetesNumbers
from capacity_shift.ecs_numbers import EcsNumbers
from capacity_shift.shift_changes import ShiftActuators
from capacity_shift.shift_run import ShiftRun, shift_figures
from inference_contracts import operations_names, shift_names
from inference_contracts.shift_names import ShiftConfiguration
from inference_decisions.capacity_shift.shift_decision import decide
from operations import aws_clients
from operations.controller_settings import Cell, read_cell
from operations.operations_errors import OperationsSettingsError

# The parent of the loggers of all modules.
_LOGGER = Logger(service=operations_names.SHIFT_SERVICE)
_CODE = Path(__file__).parents[1]


def shift(_event: Mapping[str, Any], _context: object) -> None:
    """Decide once. A failure of a service is recorded, and the next run tries again."""
    started, cell = time.monotonic(), _cell()
    queries, series = cell.metrics.queries, cell.metrics.series
    figures = {
        **shift_figures(_run().run(time.time())),
        operations_names.RUN_SECONDS: time.monotonic() - started,
        operations_names.METRIC_QUERIES: cell.metrics.queries - queries,
        operations_names.METRIC_SERIES: cell.metrics.series - series,
    }
    metrics = Metrics(namespace=operations_names.METRIC_NAMESPACE, service=operations_names.SHIFT_SERVICE)
    metrics.add_dimension("platform", cell.platform)
    metrics.add_dimension("cell", cell.name)
    for name, value in figures.items():
        unit = MetricUnit.Seconds if name == operations_names.RUN_SECONDS else MetricUnit.Count
        metrics.add_metric(name, unit, value)
    metrics.flush_metrics()


@cache
def _cell() -> Cell:
    return read_cell(os.environ)


@cache
def _run() -> ShiftRun:
    """Return the run of this process, which keeps the history that it read."""
    needed = (shift_names.SHIFT_CONFIGURATION, shift_names.SHIFT_BATCH_TABLE)
    if absent := [name for name in needed if not os.environ.get(name)]:
        raise OperationsSettingsError(f"environment variables are missing: {', '.join(absent)}")
    cell = _cell()
    numbers = _numbers(cell)
    text = (_CODE / os.environ[shift_names.SHIFT_CONFIGURATION]).read_text("utf-8")
    configuration = ShiftConfiguration.from_json(text)
    batch_table = aws_clients.resource("dynamodb").Table(os.environ[shift_names.SHIFT_BATCH_TABLE])
    return ShiftRun(
        configuration=configuration,
        demand=DemandReader(
            cell.platform,
            configuration.workers,
            cell.metrics,
            aws_clients.client("cloudwatch"),
            configuration.batch_releases,
        ),
        cell=CellReader(cell.platform, configuration, numbers, cell.metrics, batch_table),
        actuators=ShiftActuators(configuration, numbers, batch_table),
        table=cell.table,
        freeze=lambda: cell.freeze("shift"),
        decide=decide,
    )


def _numbers(cell: Cell) -> ClusterNumbers:
    if not cell.ecs_cluster:
        return KubernetesNumbers(cell.kubernetes)
    clients = aws_clients.client("application-autoscaling"), aws_clients.client("ecs")
    return EcsNumbers(cell.ecs_cluster, *clients)
