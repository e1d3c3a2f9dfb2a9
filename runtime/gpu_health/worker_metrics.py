"""What workers did in the newest windows: recorded series of CloudWatch, and pods of Kubernetes.

Each run asks for all windows again. So a run that was killed loses nothing, and metrics that come late are
seen by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy

from gpu_health.node_reading import KubernetesObject, NodeObject, is_running, ready_since
from inference_blueprints.contracts import health_names as names
from inference_blueprints.contracts.metric_labels import (
    RELEASE_LABEL_OF_PODS,
    ROLE_LABEL_OF_PODS,
    WORKER_ROLES,
)
from inference_blueprints.contracts.operations_names import QUERIES_AT_ONCE
from inference_blueprints.gpu_health.health_settings import DetectionSettings
from inference_blueprints.gpu_health.worker_windows import Numbers, WorkerWindows, peer_name
from inference_blueprints.promql.cloudwatch_promql import CloudWatchPromql
from operations.promql import name_matchers, text_literal

#: How long the newest samples take to CloudWatch. A window ends so long before it is read.
LAG_SECONDS: Final = 20.0
#: Labels of a pod that change with each revision: of a Deployment, a LeaderWorkerSet and a StatefulSet.
_REVISION_LABELS: Final = (
    "pod-template-hash",
    "leaderworkerset.sh/template-revision-hash",
    "controller-revision-hash",
)


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """A worker that is ready.

    Parameters
    ----------
    name
        Name of the pod.
    node
        The node that it runs on.
    peers
        What has to be equal for workers to be compared.
    ready_since
        Since when it is ready, in seconds since the epoch by our clock.
    """

    name: str
    node: NodeObject
    peers: str
    ready_since: float


def worker_pods(
    pods: Iterable[KubernetesObject], nodes: Mapping[str, NodeObject], skew: float
) -> list[WorkerPod]:
    """Return the workers that are ready, in the order of their names.

    Parameters
    ----------
    pods
        Serving pods.
    nodes
        Nodes by name.
    skew
        How far the API server's clock is ahead of ours, in seconds.
    """
    found = list[WorkerPod]()
    for pod in pods:
        labels, since = pod["metadata"].get("labels", {}), ready_since(pod)
        node = nodes.get(pod["spec"].get("nodeName", ""))
        if node is None or since is None or not is_running(pod):
            continue
        if labels.get(ROLE_LABEL_OF_PODS) not in WORKER_ROLES:
            continue
        peers = peer_name(
            release=labels.get(RELEASE_LABEL_OF_PODS, ""),
            revision=next((labels[each] for each in _REVISION_LABELS if each in labels), ""),
            role=labels[ROLE_LABEL_OF_PODS],
            gpu=node.instance_type,
        )
        found.append(WorkerPod(pod["metadata"]["name"], node, peers, since - skew))
    return sorted(found, key=lambda each: each.name)


def read_windows(
    metrics: CloudWatchPromql,
    platform: str,
    workers: Sequence[WorkerPod],
    settings: DetectionSettings,
    now: float,
) -> WorkerWindows:
    """Return what workers did in the newest windows.

    Parameters
    ----------
    metrics
        CloudWatch.
    platform
        Name of the platform, a label of the series.
    workers
        The workers.
    settings
        Number and length of the windows.
    now
        Seconds since the epoch.

    Raises
    ------
    MetricsError
        If CloudWatch does not answer a query completely: with a part of the workers, nobody is judged.
    """
    end = now - LAG_SECONDS
    start = end - settings.window_seconds * (settings.windows - 1)
    place = {worker.name: number for number, worker in enumerate(workers)}
    queries = [
        (series, _query(series, platform, pods, settings.window_seconds))
        for series in names.WORKER_SERIES
        for pods in name_matchers("pod", place)
    ]
    matrices = {
        series: numpy.full((settings.windows, len(workers)), numpy.nan) for series in names.WORKER_SERIES
    }

    def ask(query: str) -> Any:
        return metrics.range(query, start, end, settings.window_seconds)

    with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
        answers = list(pool.map(ask, [query for _, query in queries]))
    for (name, _), found in zip(queries, answers, strict=True):
        for series in found:
            column = place.get(series.labels.get("pod", ""))
            if column is None:
                continue
            for at, value in series.points:
                row = round((at - start) / settings.window_seconds)
                if 0 <= row < settings.windows:
                    matrices[name][row, column] = value
    return _windows(workers, matrices, end)


def _windows(workers: Sequence[WorkerPod], matrices: Mapping[str, Numbers], end: float) -> WorkerWindows:
    return WorkerWindows(
        worker=numpy.array([each.name for each in workers], dtype=str),
        node=numpy.array([each.node.name for each in workers], dtype=str),
        rack=numpy.array([each.node.rack for each in workers], dtype=str),
        pool=numpy.array([each.node.pool for each in workers], dtype=str),
        peers=numpy.array([each.peers for each in workers], dtype=str),
        age=numpy.array([end - each.ready_since for each in workers], dtype=float),
        load=matrices[names.WORKER_LOAD],
        latency=matrices[names.WORKER_LATENCY],
        requests=matrices[names.WORKER_REQUESTS],
        failed=matrices[names.WORKER_FAILED],
        failed_transfers=matrices[names.WORKER_FAILED_TRANSFERS],
        empty=matrices[names.WORKER_EMPTY],
    )


def _query(series: str, platform: str, pods: str, window_seconds: float) -> str:
    """Return the query of a series. A sample counts for one window, and does not stand for the next."""
    return f"last_over_time({series}{{platform={text_literal(platform)},{pods}}}[{window_seconds:g}s])"
