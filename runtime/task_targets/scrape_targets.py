"""The targets of Prometheus' HTTP service discovery.

https://prometheus.io/docs/prometheus/latest/http_sd/: a list of groups, each with ``targets`` and ``labels``;
the whole list in each answer; while an answer fails, Prometheus keeps the list that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inference_contracts.metric_labels import GPU_JOB, SERVING_JOB, TargetLabels
from inference_contracts.task_tags import (
    LABEL_TAGS,
    METRICS_ADDRESS_TAG,
    METRICS_JOB_TAG,
    METRICS_PORT_TAG,
)
from task_targets.cluster_tasks import LiveTask


@dataclass(frozen=True, slots=True)
class ScrapeTargets:
    """What is scraped."""

    jobs: Mapping[str, list[dict[str, Any]]]
    """Groups of targets by Prometheus job."""
    unaddressed: tuple[str, ...]
    """Tasks that should be scraped and have no address: they could not tag themselves, or just start."""


def scrape_targets(platform: str, tasks: Iterable[LiveTask]) -> ScrapeTargets:
    """Return the targets among the tasks of a cluster.

    platform: Name of the platform. Tasks without its tag are left out.
    """
    jobs: dict[str, list[dict[str, Any]]] = {SERVING_JOB: [], GPU_JOB: []}
    unaddressed: list[str] = []
    for task in sorted(tasks, key=lambda each: each.identifier):
        job = task.tags.get(METRICS_JOB_TAG, SERVING_JOB)
        serves = task.tags.get(LABEL_TAGS["release"]) or job != SERVING_JOB
        if task.tags.get(LABEL_TAGS["platform"]) != platform or not serves:
            continue
        address = _address(task)
        if not address:
            unaddressed.append(task.identifier)
            continue
        labels = _serving_labels(task) if job == SERVING_JOB else _host_labels(task)
        jobs.setdefault(job, []).append({"targets": [address], "labels": labels})
    return ScrapeTargets(jobs, tuple(unaddressed))


def _address(task: LiveTask) -> str:
    if task.tags.get(METRICS_ADDRESS_TAG):
        return task.tags[METRICS_ADDRESS_TAG]
    port = task.tags.get(METRICS_PORT_TAG)
    return f"{task.address}:{port}" if task.address and port else ""


def _serving_labels(task: LiveTask) -> dict[str, str]:
    values = {name: task.tags.get(tag, "") for name, tag in LABEL_TAGS.items()}
    node = task.host.instance if task.host else task.identifier
    return dict(TargetLabels(**values, pod=task.identifier, node=node).as_mapping())


def _host_labels(task: LiveTask) -> dict[str, str]:
    """Return the labels of an exporter that runs once per host: those of `metric_labels.NODE_SOURCES`."""
    return {
        "platform": task.tags[LABEL_TAGS["platform"]],
        "pool": task.tags.get(LABEL_TAGS["pool"], ""),
        "instance_type": task.host.instance_type if task.host else "",
        "purchase": task.host.purchase if task.host else "",
        "node": task.host.instance if task.host else task.identifier,
    }
