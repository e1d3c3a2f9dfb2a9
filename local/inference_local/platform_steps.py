"""Parts of the steps that start a local platform."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from inference_blueprints.operate.cloudformation.stack_events import ResourceEvent, resource_counts
from inference_blueprints.synthesis import synthesise
from inference_local.control_plane import artefacts, build
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import deploy
from inference_local.processes.child_processes import ProcessGroup
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_local.run_steps import Step, Steps

_KEPT = {"run.lock", "state.json"}


class _ReadyResources:
    """Counts the resources that are ready."""

    def __init__(self, step: Step, total: int) -> None:
        self._step = step
        self._total = total
        self.complete = 0

    def show(self, event: ResourceEvent) -> None:
        self.complete += event.is_complete
        self._step.update(self.complete, self._total, f"{event.stack}: {event.resource_type}")


def build_control_plane(steps: Steps) -> None:
    """Build the programs that are not in the cache, before any process waits for them."""
    with steps.step("Build the Kubernetes control plane, once per machine") as step:
        for program in (artefacts.ETCD, artefacts.KUBERNETES, artefacts.KWOK):
            build.program(program, step.tell)
        for files in (artefacts.KWOK_STAGES, *artefacts.CUSTOM_RESOURCES, *artefacts.CHARTS):
            build.module_files(files, step.tell)
        build.remove_build_cache()


def empty_directory(directory: Path) -> None:
    """Remove the files of an earlier run, but not the lock on the folder."""
    for path in directory.iterdir():
        if path.name in _KEPT:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def write_templates(steps: Steps, file: str, assembly: Path) -> None:
    """Synthesise a blueprint's file."""
    with steps.step("Write the CloudFormation templates") as step:
        templates = synthesise(file, assembly)
        count = sum(resource_counts(assembly).values())
        step.result = f"{len(templates)} stacks, {count} resources in {assembly}"


def deploy_stacks(steps: Steps, emulator: Emulator, assembly: Path, log_path: Path) -> None:
    """Deploy the templates to the emulator."""
    with steps.step("Deploy all stacks to the emulator") as step:
        ready = _ReadyResources(step, sum(resource_counts(assembly).values()))
        deploy(emulator, assembly, log_path=log_path, on_line=lambda _: None, on_event=ready.show)
        step.result = f"{ready.complete} resources"


def start_prometheus(
    steps: Steps,
    directory: Path,
    processes: ProcessGroup,
    targets: Iterable[ScrapeTarget],
    rules: str | None = None,
) -> LocalPrometheus:
    """Start a Prometheus that reads the targets and evaluates the rules."""
    with steps.step("Start Prometheus") as step:
        prometheus = LocalPrometheus(directory, processes, step.tell)
        prometheus.start(targets, rules=rules)
        step.result = prometheus.base_url
    return prometheus
