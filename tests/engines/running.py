"""Serves blueprints with real engines on this machine."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints import resources
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.isolation import Isolation
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind

# Bounds a hang, not a speed.
_PAGE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class RunningEngines:
    """Real engines behind their frontends."""

    serving: LocalServing
    """The deployments."""
    processes: ProcessGroup
    """All processes."""
    directory: Path
    """Folder with the files of each deployment, and logs."""

    @property
    def endpoints(self) -> tuple[LocalEndpoint, ...]:
        """The endpoint of each model."""
        return self.serving.endpoints()

    def counted(self, name: str, metric: str) -> float:
        """Return the sum of one of vLLM's metrics over processes. One that has ended counts as 0.

        name: Name of a process, or the beginning of several, such as a role.
        metric: Name of the metric without ``vllm:``.
        """
        return sum(
            float(value)
            for each in self.serving.served_processes()
            if each.name.startswith(name)
            for value in re.findall(rf"^vllm:{metric}{{[^}}]*}} (\S+)$", _page(each.url), re.MULTILINE)
        )

    def start_inside(
        self, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> RunningProcess:
        """Start a program of this checkout where the frontends and workers run.

        name: Name of the process and of its log.
        command: Arguments of Python.
        environment: Its variables.
        """
        holders = [each.pid for each in self.processes.processes if each.name == "network namespace"]
        return self.processes.start(
            name,
            Isolation(holders[0]).command([sys.executable, *command]),
            environment={**environment, "PYTHONPATH": str(resources.root())},
            log_path=self.directory / "logs" / f"{name}.log",
            working_directory=resources.root(),
        )

    def ask_inside(self, base_url: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to a worker itself, at its address in the namespace, and return its answer."""
        answer = self.directory / "answer.json"
        answer.unlink(missing_ok=True)
        command = ["-m", "tests.engines.ask_inside", base_url, path, json.dumps(body), str(answer)]
        process = self.start_inside("request", command, {})
        code = process.popen.wait(_PAGE_SECONDS)
        assert code == 0, process.log_path.read_text()
        self.processes.forget(process)
        return dict(json.loads(answer.read_text(encoding="utf-8")))


@contextmanager
def running_engines(
    blueprint: Blueprint, directory: Path, kind: EngineKind | None = None
) -> Iterator[RunningEngines]:
    """Serve a blueprint, and stop it at the end.

    kind: The engines. By default, those of `local up --engines vllm`.
    """
    with _prepared(blueprint, directory, kind or VllmKind(blueprint)) as engines:
        engines.serving.start(print)
        yield engines


@contextmanager
def starting_engines(blueprint: Blueprint, directory: Path, kind: EngineKind) -> Iterator[RunningEngines]:
    """Start to serve a blueprint without waiting until it is ready, and stop it at the end."""
    with _prepared(blueprint, directory, kind) as engines:
        engines.serving.begin()
        yield engines


@contextmanager
def _prepared(blueprint: Blueprint, directory: Path, kind: EngineKind) -> Iterator[RunningEngines]:
    kind.prepare(print)
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, directory, processes, engines=kind) as serving,
    ):
        yield RunningEngines(serving, processes, directory)


def _page(url: str) -> str:
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=_PAGE_SECONDS) as response:  # noqa: S310 -- of this machine
            return str(response.read().decode())
    except urllib.error.URLError:
        return ""
