"""What nodes and workers did in the newest windows: recorded series of CloudWatch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy

from gpu_health.watched_node import WatchedWorker
from inference_contracts import health_names as names
from inference_contracts.operations_names import QUERIES_AT_ONCE
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from inference_decisions.repairs.fault_rules import FaultRules
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import DcgmReading
from inference_decisions.repairs.worker_windows import Numbers, WorkerWindows
from operations.promql import name_matchers, text_literal

#: Label that tells the parts of one query apart.
_WHAT: Final = "what"
#: Fields: https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html. A field that the
#: exporter does not export has no series, and counts as zero. Platforms of one account may have nodes of the
#: same name, so each part selects its platform too. Agents send these fields alone (`GPU_SERIES`).
_PARTS: Final[Mapping[str, str]] = {
    "gpus": "count by (node) (last_over_time(DCGM_FI_DEV_GPU_UTIL{$selected}[2m]))",
    "uncorrectable": "sum by (node) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{$selected})",
    "remapped": "sum by (node) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{$selected})",
    "remap_failures": "sum by (node) (DCGM_FI_DEV_ROW_REMAP_FAILURE{$selected})",
    "corrected": "max by (node) (rate(DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{$selected}[5m]))",
    "xid": "max by (node, gpu) (DCGM_FI_DEV_XID_ERRORS{$selected}) != 0",
}
#: Parts that count as uncorrectable errors.
_UNCORRECTABLE: Final = ("uncorrectable", "remapped", "remap_failures")


def dcgm_readings(
    metrics: CloudWatchPromql, platform: str, nodes: Iterable[str], rules: FaultRules, at: float
) -> Mapping[str, DcgmReading]:
    """Return the newest readings by node. Nodes whose exporter does not answer are left out.

    platform: Name of the platform, a label of the series.
    nodes: Names of nodes, a few.
    rules: What XIDs mean. Those of applications say nothing about a GPU.
    at: Seconds since the epoch.
    Raises MetricsError if CloudWatch does not answer.
    """
    found = dict[str, dict[str, list[float]]]()
    for selected in _selected(platform, nodes):
        for series in metrics.instant(_gpu_query(selected), at):
            node, what = series.labels.get("node", ""), series.labels.get(_WHAT, "")
            found.setdefault(node, {}).setdefault(what, []).append(series.points[-1][1])
    return {
        node: DcgmReading(
            at=at,
            gpus=int(parts["gpus"][0]),
            xids=tuple(sorted(int(value) for value in parts.get("xid", []) if _counts(value, rules))),
            uncorrectable=int(sum(sum(parts.get(each, [])) for each in _UNCORRECTABLE)),
            corrected_per_second=max(parts.get("corrected", [0.0])),
        )
        for node, parts in found.items()
        if "gpus" in parts
    }


def listed_gpus(
    metrics: CloudWatchPromql, platform: str, nodes: Iterable[str], at: float
) -> Mapping[str, int]:
    """Return how many GPUs the exporter of each node lists. Nodes whose exporter is silent are left out."""
    found = dict[str, int]()
    for selected in _selected(platform, nodes):
        query = _PARTS["gpus"].replace("$selected", selected)
        found |= {
            series.labels.get("node", ""): int(series.points[-1][1]) for series in metrics.instant(query, at)
        }
    return found


def _selected(platform: str, nodes: Iterable[str]) -> Iterator[str]:
    """Yield matchers of the series of a platform's nodes, each for as many nodes as one query may name."""
    for matcher in name_matchers("node", sorted(nodes)):
        yield f"platform={text_literal(platform)},{matcher}"


def _gpu_query(selected: str) -> str:
    return " or ".join(
        f'label_replace({part.replace("$selected", selected)}, "{_WHAT}", "{what}", "", "")'
        for what, part in _PARTS.items()
    )


def _counts(value: float, rules: FaultRules) -> bool:
    rule = rules.rule("xid", str(int(value)))
    return rule is not None and rule.counts


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
