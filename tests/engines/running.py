"""Serves blueprints with real engines on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.targets.local.engine_kind import EngineKind
from inference_blueprints.targets.local.local_endpoint import LocalEndpoint
from inference_blueprints.targets.local.local_serving import LocalServing
from inference_blueprints.targets.local.vllm_cpu.vllm_kind import VllmKind


@dataclass(frozen=True, slots=True)
class RunningEngines:
    """Real engines behind their frontends.

    Parameters
    ----------
    serving
        The deployments.
    endpoints
        The endpoint of each model.
    processes
        All processes.
    directory
        Folder with the files of each deployment, and logs.
    """

    serving: LocalServing
    endpoints: tuple[LocalEndpoint, ...]
    processes: ProcessGroup
    directory: Path


@contextmanager
def running_engines(
    blueprint: Blueprint, directory: Path, kind: EngineKind | None = None
) -> Iterator[RunningEngines]:
    """Serve a blueprint, and stop it at the end.

    Parameters
    ----------
    kind
        The engines. By default, those of `local up --engines vllm`.
    """
    engines = kind or VllmKind(blueprint)
    engines.prepare(print)
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, directory, processes, engines=engines) as serving,
    ):
        yield RunningEngines(serving, serving.start(print), processes, directory)
