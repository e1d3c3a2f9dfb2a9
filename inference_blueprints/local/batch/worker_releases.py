"""What is deployed of batch workers: releases of their chart, or services of ECS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inference_blueprints.contracts import batch_environment
from inference_blueprints.local.emulator.records import RecordedRelease


@dataclass(frozen=True, slots=True)
class WorkerRelease:
    """The workers of one model.

    Parameters
    ----------
    replicas
        How many run here, where nothing scales them: as many as stay without work, and one at least.
    environment
        What they are told.
    """

    model: str
    replicas: int
    environment: Mapping[str, str]


def worker_releases(releases: Iterable[RecordedRelease]) -> list[WorkerRelease]:
    """Return those of the releases that are batch workers: their environment names a queue of shards.

    Parameters
    ----------
    releases
        What the emulator recorded.
    """
    return [
        _workers(environment, _replicas(release.values))
        for release in releases
        for environment in [release.values.get("environment", {})]
        if batch_environment.QUEUE_URL in environment
    ]


def worker_services(ecs: Any) -> list[WorkerRelease]:
    """Return those of the services of ECS that are batch workers.

    Parameters
    ----------
    ecs
        boto3's client of ECS, of the emulator.
    """
    return [
        _workers(environment, service["desiredCount"])
        for service in _services(ecs)
        for environment in _environments(ecs, service["taskDefinition"])
        if batch_environment.QUEUE_URL in environment
    ]


def _workers(environment: Mapping[str, str], count: int) -> WorkerRelease:
    return WorkerRelease(environment[batch_environment.MODEL], max(1, count), environment)


def _replicas(values: Mapping[str, Any]) -> int:
    """Return the chart's number of workers or, where KEDA has it, the least of them."""
    return int(values["scaling"]["min"] if "scaling" in values else values["replicas"])


def _services(ecs: Any) -> Iterator[Mapping[str, Any]]:
    for cluster in ecs.list_clusters()["clusterArns"]:
        names = ecs.list_services(cluster=cluster)["serviceArns"]
        if names:
            yield from ecs.describe_services(cluster=cluster, services=names)["services"]


def _environments(ecs: Any, task_definition: str) -> Iterator[dict[str, str]]:
    """Yield what each container of a task is told."""
    described = ecs.describe_task_definition(taskDefinition=task_definition)["taskDefinition"]
    for container in described["containerDefinitions"]:
        yield {each["name"]: each["value"] for each in container.get("environment", [])}
