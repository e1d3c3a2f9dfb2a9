"""The batch workers as processes on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inference_contracts import batch_names
from inference_local.emulator.records import RecordedRelease
from inference_local.processes.child_processes import ProcessGroup, Restarts, RunningProcess
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_runtime import runtime_directory


@dataclass(frozen=True, slots=True)
class WorkerRelease:
    """The workers of one model."""

    model: str
    replicas: int
    """Number of workers on this machine, where they are not scaled: the minimum, and at least one."""
    environment: Mapping[str, str]
    """Their environment variables."""

    @property
    def address(self) -> str:
        """First label of the host name of the model's deployments that answer them."""
        return _label(self.environment[batch_names.ENDPOINT])

    @property
    def lent_addresses(self) -> tuple[str, ...]:
        """The same of deployments that may have no workers."""
        return tuple(
            _label(each) for each in self.environment.get(batch_names.LENT_ENDPOINTS, "").split(",") if each
        )


def _label(endpoint: str) -> str:
    return str(urlsplit(endpoint).hostname).split(".")[0]


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


# A killed worker is detected after seconds, not minutes, and a worker stops at once on SIGTERM. Metrics come
# each second, which the capacity shift reads as minutes.
_SHORTER_TIMES = {
    batch_names.HEARTBEAT_SECONDS: "2",
    batch_names.VISIBILITY_SECONDS: "5",
    batch_names.DRAIN_SECONDS: "1",
    batch_names.POLL_SECONDS: "2",
    batch_names.METRICS_SECONDS: "1",
}


@dataclass(frozen=True, slots=True)
class _Worker:
    """A running worker and what it was started with."""

    name: str
    model: str
    environment: Mapping[str, str]
    process: RunningProcess


class LocalBatchWorkers:
    """The workers of releases of the chart ``batch-worker``, or of ECS services.

    They run with the environment of the pods or tasks, except for the address of the model, the emulator's
    address and credentials, and shorter timeouts.

    releases: The deployed releases, one per model with a queue.
    endpoints: The endpoint of each model.
    emulator_environment: Variables that point AWS clients at the emulator.
    directory: Folder for their logs.
    processes: The process group that they join. It ends all of them.
    """

    def __init__(
        self,
        releases: Sequence[WorkerRelease],
        endpoints: Sequence[LocalEndpoint],
        emulator_environment: Mapping[str, str],
        directory: Path,
        processes: ProcessGroup,
    ) -> None:
        self._releases = releases
        self._addresses = {
            name: url
            for each in endpoints
            for name, url in {each.model: each.base_url.removesuffix("/v1"), **each.addresses}.items()
        }
        self._emulator_environment = emulator_environment
        self._directory = directory.resolve()
        self._processes = processes
        self._workers: list[_Worker] = []

    def start(self, door_url: str | None = None) -> None:
        """Start the number of workers that the releases request.

        door_url: Base URL of the front door, ending in ``/v1``. None if they call the models.
        """
        for release in self._releases:
            environment = {
                **release.environment,
                **self._emulator_environment,
                **_SHORTER_TIMES,
                **(
                    {batch_names.ENDPOINT: door_url.removesuffix("/v1")}
                    if door_url
                    else {batch_names.ENDPOINT: self._addresses[release.address], **self._lent(release)}
                ),
                "PATH": os.defpath,
                "PYTHONPATH": str(runtime_directory()),
                "HOME": str(self._directory),
            }
            for number in range(1, release.replicas + 1):
                self._start(f"batch worker {number} of {release.model}", release.model, environment)

    def _lent(self, release: WorkerRelease) -> Mapping[str, str]:
        addresses = [self._addresses[each] for each in release.lent_addresses]
        return {batch_names.LENT_ENDPOINTS: ",".join(addresses)} if addresses else {}

    def replace(self, model: str) -> int:
        """Kill every worker of a model with SIGKILL, start replacements, and return their number.

        model: A model with workers.
        """
        victims = [worker for worker in self._workers if worker.model == model]
        for victim in victims:
            self._processes.kill(victim.process)
            self._workers.remove(victim)
        for victim in victims:
            self._start(victim.name, model, victim.environment)
        return len(victims)

    def restart_ended(self, restarts: Restarts) -> None:
        """Start workers again that have ended. Their shards go to any worker after a few seconds.

        restarts: Counts the restarts of each worker.
        """
        restarts.restart_ended([(each.process, partial(self._restart, each)) for each in self._workers])

    def check(self) -> None:
        """Make sure that every process of the group still runs.

        Raises ProcessDied if one has exited, with its exit code and last log lines.
        """
        self._processes.check()

    def _restart(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._start(worker.name, worker.model, worker.environment)

    def _start(self, name: str, model: str, environment: Mapping[str, str]) -> None:
        process = self._processes.start(
            name,
            [sys.executable, "-m", "batch.worker"],
            environment=environment,
            log_path=self._directory / "logs" / f"{name.replace(' ', '-')}.log",
            working_directory=self._directory,
        )
        self._workers.append(_Worker(name, model, environment, process))
