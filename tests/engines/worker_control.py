"""Ends, stops and replaces the processes of running engines."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace

import psutil

from inference_local.serving.running_workers import WorkerProcess
from tests.engines.running import RunningEngines

# Streams that continued on another worker, or could not.
_MIGRATIONS = re.compile(r"^dynamo_frontend_model_migration_total\{[^}]*\} (\S+)$", re.MULTILINE)
#: Time in which a process ends that was told to, or that lost its engine. It bounds a hang, not a speed.
END_SECONDS = 240.0


class WorkerControl:
    """The processes of running engines."""

    def __init__(self, running: RunningEngines) -> None:
        self._running = running
        self._lost: list[WorkerProcess] = []
        self.serving = running.serving

    def worker(self, role: str) -> WorkerProcess:
        """Return the first worker of a role."""
        return self.workers(role)[0]

    def workers(self, role: str) -> tuple[WorkerProcess, ...]:
        """Return the workers of a role."""
        (first,) = (each for each in self.serving.first_workers() if each.role == role)
        return tuple(replace(first, index=index) for index in range(first.workers_of_role))

    def urls(self) -> list[str]:
        """Return the base URL, with ``/v1``, of each frontend of the first deployment."""
        deployment = self.serving.first_workers()[0].deployment
        return [f"{url}/v1" for url in self.serving.frontend_urls(deployment)]

    def process(self, name: str) -> psutil.Process:
        """Return the process with a name, such as that of a worker."""
        (found,) = (each for each in self._running.processes.processes if each.name == name)
        return psutil.Process(found.pid)

    def frontend(self, index: int) -> psutil.Process:
        """Return a frontend of the first deployment, in the order of `urls`."""
        release = self.serving.first_workers()[0].deployment.plan.release
        return self.process(f"frontend {index + 1} of {release}")

    def engine_core(self, worker: WorkerProcess) -> psutil.Process:
        """Return vLLM's own process of a worker, which schedules and computes."""
        children = self.process(worker.name).children(recursive=True)
        (core,) = (each for each in children if each.name().startswith("VLLM::EngineCor"))
        return core

    def migrations(self) -> float:
        """Return how many requests the frontends have moved to another worker or could not move."""
        return sum(
            float(count)
            for url in self.urls()
            for count in _MIGRATIONS.findall(_text(f"{url.removesuffix('/v1')}/metrics"))
        )

    def counted(self, name: str, metric: str) -> float:
        """Return the sum of one of vLLM's metrics over the processes whose names begin with a name."""
        return self._running.counted(name, metric)

    def tell_to_end(self, worker: WorkerProcess) -> psutil.Process:
        """Send SIGTERM to a worker, as to the first process of its container, and return its process."""
        process = self.process(worker.name)
        self.will_lose(worker)
        process.terminate()
        return process

    def kill(self, worker: WorkerProcess) -> None:
        """Kill a worker with all of its processes."""
        self.serving.kill(worker)

    def will_lose(self, worker: WorkerProcess) -> None:
        """Let `restore` replace a worker that ends, or is no longer registered, in another way."""
        self._lost.append(worker)

    def restore(self) -> None:
        """Start what a test has ended, and wait until every worker is registered."""
        while self._lost:
            self.serving.kill(self._lost.pop())
        self.serving.replace_killed(print)


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended. It may still wait for its parent to ask for its exit code."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def wait_until(condition: Callable[[], bool], what: str, seconds: float = END_SECONDS) -> None:
    """Wait for a condition, and fail with its description if it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds:.0f} s: {what}"
        time.sleep(0.1)


def family(process: psutil.Process) -> Sequence[psutil.Process]:
    """Return a process and its descendants."""
    return (process, *process.children(recursive=True))


def _text(url: str) -> str:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - a loopback address
        return str(answer.read().decode())
