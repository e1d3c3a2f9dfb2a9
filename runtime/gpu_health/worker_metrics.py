"""What workers did in the newest windows: recorded series of CloudWatch.

Each run asks for all windows again. So a run that was killed loses nothing, and metrics that come late are
seen by the next run: the newest window is the newest that has data, if it is not too old to decide by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy

from gpu_health.watched_node import WatchedWorker
from inference_contracts import health_names as names
from inference_contracts.operations_names import QUERIES_AT_ONCE
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.worker_windows import Numbers, WorkerWindows
from operations.promql import name_matchers, text_literal

#: How long the newest samples take to CloudWatch. A window ends so long before it is read.
LAG_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class ReadWindows:
    """The newest windows that have data."""

    windows: WorkerWindows
    """What workers did in them."""
    end: float
    """When the newest of them ended, in seconds since the epoch. Zero if no worker reported in one that is
    young enough: then all are empty."""


def read_windows(
    metrics: CloudWatchPromql,
    platform: str,
    workers: Sequence[WatchedWorker],
    settings: HealthSettings,
    now: float,
) -> ReadWindows:
    """Return what workers did in the newest windows that have data.

    platform: Name of the platform, a label of the series.
    settings: Number and length of the windows, and the age from which data decides nothing.
    now: Seconds since the epoch.
    Raises MetricsError if CloudWatch does not answer a query completely: with a part of the workers, nobody
        is judged.
    """
    detection, step = settings.detection, settings.detection.window_seconds
    late = int((settings.stale_seconds - LAG_SECONDS) // step)
    rows = detection.windows + late
    end = now - LAG_SECONDS
    start = end - step * (rows - 1)
    place = {worker.name: number for number, worker in enumerate(workers)}
    queries = [
        (series, _query(series, platform, pods, step))
        for series in names.WORKER_SERIES
        for pods in name_matchers("pod", place)
    ]
    matrices = {series: numpy.full((rows, len(workers)), numpy.nan) for series in names.WORKER_SERIES}

    def ask(query: str) -> Any:
        return metrics.range(query, start, end, step)

    with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
        answers = list(pool.map(ask, [query for _, query in queries]))
    for (name, _), found in zip(queries, answers, strict=True):
        for series in found:
            column = place.get(series.labels.get("pod", ""))
            if column is None:
                continue
            for at, value in series.points:
                row = round((at - start) / step)
                if 0 <= row < rows:
                    matrices[name][row, column] = value
    newest = _newest(matrices[names.WORKER_REQUESTS], late)
    missing = late if newest is None else rows - 1 - newest
    kept = slice(late - missing, rows - missing)
    windows = {series: matrix[kept] for series, matrix in matrices.items()}
    reported = end - step * missing
    return ReadWindows(_windows(workers, windows, reported, step), 0.0 if newest is None else reported)


def _newest(requests: Numbers, late: int) -> int | None:
    """Return the newest row that has data, of the last rows that are young enough. None if none has.

    Samples of one minute may arrive in parts. With less than half of the workers that reported in the fullest
    window, a window has not arrived.
    """
    counts = numpy.isfinite(requests).sum(axis=1)
    enough = max(1.0, counts.max() / 2)
    young = range(len(counts) - 1, len(counts) - 2 - late, -1)
    return next((row for row in young if counts[row] >= enough), None)


def _windows(
    workers: Sequence[WatchedWorker], matrices: Mapping[str, Numbers], end: float, seconds: float
) -> WorkerWindows:
    return WorkerWindows(
        worker=numpy.array([each.name for each in workers], dtype=str),
        node=numpy.array([each.node.name for each in workers], dtype=str),
        rack=numpy.array([each.node.rack for each in workers], dtype=str),
        pool=numpy.array([each.node.pool for each in workers], dtype=str),
        peers=numpy.array([each.peers for each in workers], dtype=str),
        age=numpy.array(
            [end - since for since in _ready_since(workers, matrices, end, seconds)], dtype=float
        ),
        load=matrices[names.WORKER_LOAD],
        latency=matrices[names.WORKER_LATENCY],
        requests=matrices[names.WORKER_REQUESTS],
        failed=matrices[names.WORKER_FAILED],
        failed_transfers=matrices[names.WORKER_FAILED_TRANSFERS],
        empty=matrices[names.WORKER_EMPTY],
    )


def _ready_since(
    workers: Sequence[WatchedWorker], matrices: Mapping[str, Numbers], end: float, seconds: float
) -> Iterator[float]:
    """Yield since when each worker is ready.

    The cluster may not say it. Then it is ready since the first window in which it reported its load, which
    it does without requests too: at least all windows ago if it reported in every one.
    """
    reported = numpy.isfinite(matrices[names.WORKER_LOAD])
    windows = len(reported)
    for column, worker in enumerate(workers):
        if worker.ready_since is not None:
            yield worker.ready_since
            continue
        rows = numpy.flatnonzero(reported[:, column])
        first = int(rows[0]) if rows.size else windows
        yield end - seconds * (windows - first)


def _query(series: str, platform: str, pods: str, window_seconds: float) -> str:
    """Return the query of a series. A sample counts for one window, and does not stand for the next."""
    return f"last_over_time({series}{{platform={text_literal(platform)},{pods}}}[{window_seconds:g}s])"
