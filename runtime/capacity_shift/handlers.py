"""The function `shift`, which EventBridge Scheduler calls each minute.

It reads the variables of `operations_names`, ``SHIFT_CONFIGURATION`` and ``SHIFT_BATCH_TABLE``.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from capacity_shift.cell_reader import CellReader
from capacity_shift.demand_reader import DemandReader
from capacity_shift.shift_changes import ShiftActuators
from capacity_shift.shift_metrics import shift_figures
from capacity_shift.shift_run import ShiftRun
from inference_blueprints.capacity_shift.shift_decision import decide
from inference_blueprints.contracts import operations_names, shift_names
from inference_blueprints.contracts.shift_configuration import ShiftConfiguration
from operations import aws_clients
from operations.cell import Cell, read_cell
from operations.controller_metrics import emit_controller_metrics
from operations.operations_errors import OperationsSettingsError

_CODE = Path(__file__).parents[1]
logging.getLogger().setLevel(logging.INFO)


def shift(_event: Mapping[str, Any], _context: object) -> None:
    """Decide once. A failure of a service is recorded, and the next run tries again."""
    started, cell, now = time.monotonic(), _cell(), time.time()
    queries, series = cell.metrics.queries, cell.metrics.series
    outcome = _run().run(now)
    emit_controller_metrics(
        cell,
        operations_names.SHIFT_SERVICE,
        {
            **shift_figures(outcome),
            operations_names.RUN_SECONDS: time.monotonic() - started,
            operations_names.METRIC_QUERIES: cell.metrics.queries - queries,
            operations_names.METRIC_SERIES: cell.metrics.series - series,
        },
    )


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
    text = (_CODE / os.environ[shift_names.SHIFT_CONFIGURATION]).read_text("utf-8")
    configuration = ShiftConfiguration.from_json(text)
    batch_table = aws_clients.resource("dynamodb").Table(os.environ[shift_names.SHIFT_BATCH_TABLE])
    return ShiftRun(
        configuration=configuration,
        demand=DemandReader(
            cell.platform, configuration.workers, cell.metrics, aws_clients.client("cloudwatch")
        ),
        cell=CellReader(cell.platform, configuration, cell.kubernetes, cell.metrics),
        actuators=ShiftActuators(configuration, cell.kubernetes, batch_table),
        table=cell.table,
        freeze=lambda: cell.freeze("shift"),
        decide=decide,
    )
