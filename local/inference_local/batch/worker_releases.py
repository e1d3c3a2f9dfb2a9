"""The deployed batch workers: Helm releases or ECS services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inference_contracts import batch_names
from inference_local.emulator.records import RecordedRelease


@dataclass(frozen=True, slots=True)
class WorkerRelease:
    """The workers of one model."""

    model: str
    replicas: int
    """Number of workers on this machine, where they are not scaled: the minimum, and at least one."""
    environment: Mapping[str, str]
    """Their environment variables."""


def worker_releases(releases: Iterable[RecordedRelease]) -> list[WorkerRelease]:
    """Return the releases that are batch workers. Their environment has the URL of a queue.

    releases: The releases that the emulator recorded.
    """
    return [
        _workers(environment, _replicas(release.values))
        for release in releases
        for environment in [release.values.get("environment", {})]
        if batch_names.QUEUE_URL in environment
    ]


def worker_services(ecs: Any) -> list[WorkerRelease]:
    """Return the ECS services that are batch workers.

    ecs: A boto3 client for the emulator's ECS.
    """
    return [
        _workers(environment, service["desiredCount"])
        for service in _services(ecs)
        for environment in _environments(ecs, service["taskDefinition"])
        if batch_names.QUEUE_URL in environment
    ]


def _workers(environment: Mapping[str, str], count: int) -> WorkerRelease:
    return WorkerRelease(environment[batch_names.MODEL], max(1, count), environment)


def _replicas(values: Mapping[str, Any]) -> int:
    """Return the chart's number of workers, or the minimum if KEDA scales them."""
    return int(values["scaling"]["min"] if "scaling" in values else values["replicas"])


def _services(ecs: Any) -> Iterator[Mapping[str, Any]]:
    for cluster in ecs.list_clusters()["clusterArns"]:
        names = ecs.list_services(cluster=cluster)["serviceArns"]
        if names:
            yield from ecs.describe_services(cluster=cluster, services=names)["services"]


def _environments(ecs: Any, task_definition: str) -> Iterator[dict[str, str]]:
    """Yield the environment of each container of a task."""
    described = ecs.describe_task_definition(taskDefinition=task_definition)["taskDefinition"]
    for container in described["containerDefinitions"]:
        yield {each["name"]: each["value"] for each in container.get("environment", [])}
