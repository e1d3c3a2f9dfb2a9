"""The workers of batch as processes of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints import resources
from inference_blueprints.contracts import batch_environment
from inference_blueprints.local.batch.worker_releases import WorkerRelease
from inference_blueprints.processes.child_processes import ProcessGroup, RunningProcess
from inference_blueprints.targets.local.local_endpoint import LocalEndpoint

# A worker that is killed is missed after seconds, not minutes, and one that is told to end does so at once.
_SHORTER_TIMES = {
    batch_environment.HEARTBEAT_SECONDS: "2",
    batch_environment.VISIBILITY_SECONDS: "5",
    batch_environment.DRAIN_SECONDS: "1",
    batch_environment.POLL_SECONDS: "2",
}


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker: how it is started, and as it runs."""

    name: str
    model: str
    environment: Mapping[str, str]
    process: RunningProcess


class LocalBatchWorkers:
    """The workers that releases of the chart ``batch-worker`` or services of ECS ask for.

    They run with the environment of pods or tasks, but for the address of the model, the emulator's address
    and credentials, and shorter times.

    Parameters
    ----------
    releases
        Those of the deployment, one a model that has a queue.
    endpoints
        Where each model answers.
    emulator_environment
        What points AWS clients at the emulator.
    directory
        Where their logs go.
    processes
        The group that they join. It makes sure that none is left.
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
        self._addresses = {each.model: each.base_url.removesuffix("/v1") for each in endpoints}
        self._emulator_environment = emulator_environment
        self._directory = directory.resolve()
        self._processes = processes
        self._workers: list[_Worker] = []

    def start(self) -> None:
        """Start as many as the releases ask for."""
        for release in self._releases:
            environment = {
                **release.environment,
                **self._emulator_environment,
                **_SHORTER_TIMES,
                batch_environment.ENDPOINT: self._addresses[release.model],
                "PATH": os.defpath,
                "PYTHONPATH": str(resources.runtime_directory()),
                "HOME": str(self._directory),
            }
            for number in range(1, release.replicas + 1):
                self._start(f"batch worker {number} of {release.model}", release.model, environment)

    def replace(self, model: str) -> int:
        """Kill every worker of a model as a crash does, start others in their place, and return how many.

        Parameters
        ----------
        model
            One that has workers.
        """
        victims = [worker for worker in self._workers if worker.model == model]
        for victim in victims:
            self._processes.kill(victim.process)
            self._workers.remove(victim)
        for victim in victims:
            self._start(victim.name, model, victim.environment)
        return len(victims)

    def check(self) -> None:
        """Make sure that every process of the group still runs.

        Raises
        ------
        ProcessDied
            With exit code and last log lines of the first that has exited.
        """
        self._processes.check()

    def _start(self, name: str, model: str, environment: Mapping[str, str]) -> None:
        process = self._processes.start(
            name,
            [sys.executable, "-m", "batch.worker"],
            environment=environment,
            log_path=self._directory / "logs" / f"{name.replace(' ', '-')}.log",
            working_directory=self._directory,
        )
        self._workers.append(_Worker(name, model, environment, process))
