"""Serves a blueprint by simulated or real engines, with one model directory for both."""

from __future__ import annotations

import copy
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints import resources
from inference_blueprints.spec.types import Blueprint
from inference_catalog import Model
from inference_local.processes.child_processes import RunningProcess
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.process_commands import environment
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.serving.vllm_cpu.machine import Machine
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind
from tests.engines.comparison.exchange import Response, send, stream
from tests.engines.running import RunningEngines, running_engines

#: A stop of a process on a busy machine; answers take seconds.
_TIMEOUT = 600.0
_IN_FLIGHT = "dynamo_frontend_inflight_requests{"
#: Room for two workers of a role, whatever this machine has.
_MACHINE = Machine(memory_gib=24.0, processors=2)


def blueprint(
    name: str,
    *,
    replicas: Sequence[int],
    workload: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Blueprint:
    """Return a shipped blueprint with fewer and smaller workers and further arguments of vLLM."""
    text = (resources.blueprints_directory() / f"{name}.yaml").read_text(encoding="utf-8")
    document = copy.deepcopy(yaml.safe_load(text))
    (model,) = document["spec"]["models"]
    (deployment,) = model["deployments"]
    roles = deployment.get("disaggregated", deployment)
    for role, count in zip(_ROLES[len(replicas)], replicas, strict=True):
        roles[role] |= {"replicas": count, "tensorParallelSize": 1}
    model["workload"] |= workload or {}
    if arguments:
        model["engine"] = {"vllm": {"args": dict(arguments)}}
    return Blueprint.model_validate(document)


def _page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310 -- of this machine
        return str(answer.read().decode())


_WORKERS = frozenset({"worker", "prefill", "decode"})
_ROLES: Mapping[int, Sequence[str]] = {1: ("aggregated",), 2: ("prefill", "decode")}


class SimulatedWithRealFiles(SimulatedKind):
    """Simulated engines with the tokenizer and the configuration of the real ones."""

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:
        VllmKind(self._blueprint, _MACHINE).write_model(deployment, shape, directory)


@dataclass(frozen=True, slots=True)
class Layout:
    """A served blueprint with one model."""

    running: RunningEngines
    home: Path

    @property
    def model(self) -> str:
        return self.running.endpoints[0].model

    @property
    def context(self) -> int:
        return self.running.endpoints[0].context_length

    def send(self, path: str, body: Any) -> Response:
        """Send a request to the endpoint."""
        return send(self.running.endpoints[0].base_url, path, body, timeout=_TIMEOUT)

    def events(self, path: str, body: Any) -> Iterator[str]:
        """Yield the events of a streamed response as they arrive."""
        yield from stream(self.running.endpoints[0].base_url, path, body, timeout=_TIMEOUT)

    def in_flight(self) -> int:
        """Return the number of requests that the frontends are answering."""
        lines = self.frontend_metrics().splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(_IN_FLIGHT))

    def frontend_metrics(self) -> str:
        """Return the metrics of all frontends."""
        return "".join(map(_page, self.running.endpoints[0].metrics_urls))

    def worker_metrics(self) -> dict[str, str]:
        """Return the metrics of one worker of each role."""
        processes = self.running.serving.served_processes()
        return {each.process: _page(f"{each.url}/metrics") for each in processes if each.process in _WORKERS}

    def start_inside(self, name: str, command: Sequence[str]) -> RunningProcess:
        """Start a program where the frontends run."""
        return self.running.start_inside(name, command, environment({}, self.home))


@contextmanager
def served(shown: Blueprint, kind: str, directory: Path) -> Iterator[Layout]:
    """Serve a blueprint with one deployment by one kind of engines."""
    engines = VllmKind(shown, _MACHINE) if kind == "real" else SimulatedWithRealFiles(shown)
    with running_engines(shown, directory / kind, engines) as running:
        (deployment,) = [each for each in (directory / kind).iterdir() if (each / "model").is_dir()]
        yield Layout(running, deployment)
