"""Parts of the steps that start a local platform."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from inference_blueprints.measure.statistics import amount
from inference_local.processes.child_processes import ProcessGroup
from inference_local.run_steps import (
    CALLERS,
    CONTROL_PLANE,
    PROMETHEUS,
    STACKS,
    TEMPLATES,
    Step,
    Steps,
    shown,
)

if TYPE_CHECKING:
    from inference_blueprints.operate.cloudformation.stack_events import ResourceEvent
    from inference_local.emulator.emulator import Emulator
    from inference_local.front_door.front_door_outcome import FrontDoorOutcome
    from inference_local.front_door.front_door_run import LocalFrontDoor
    from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget

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
    from inference_local.control_plane import artefacts, build

    with steps.step(CONTROL_PLANE) as step:
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
    from inference_blueprints.operate.cloudformation.stack_events import resource_counts
    from inference_blueprints.synthesis import synthesise

    with steps.step(TEMPLATES) as step:
        templates = synthesise(file, assembly)
        count = sum(resource_counts(assembly).values())
        step.result = f"{len(templates)} stacks, {count} resources in {shown(assembly)}"


def deploy_stacks(steps: Steps, emulator: Emulator, assembly: Path, log_path: Path) -> None:
    """Deploy the templates to the emulator."""
    from inference_blueprints.operate.cloudformation.stack_events import resource_counts
    from inference_local.emulator.emulator_deploy import deploy

    with steps.step(STACKS) as step:
        ready = _ReadyResources(step, sum(resource_counts(assembly).values()))
        deploy(emulator, assembly, log_path=log_path, on_line=lambda _: None, on_event=ready.show)
        step.result = f"{ready.complete} resources"


def call_front_door(steps: Steps, door: LocalFrontDoor, *, timed: bool) -> FrontDoorOutcome:
    """Let all teams call through a front door while a replica is killed.

    timed: Whether times of answers mean something.
    """
    with steps.step(CALLERS) as step:
        outcome = door.run(lambda what: step.update(detail=what), timed=timed)
        step.result = (
            f"{amount(outcome.requests, 'request')}, {amount(outcome.failures, 'failure')}, "
            f"{outcome.refused} refused"
        )
    return outcome


def start_prometheus(
    steps: Steps,
    directory: Path,
    processes: ProcessGroup,
    targets: Iterable[ScrapeTarget],
    rules: str | None = None,
) -> LocalPrometheus:
    """Start a Prometheus that reads the targets and evaluates the rules."""
    from inference_local.prometheus.local_prometheus import LocalPrometheus

    with steps.step(PROMETHEUS) as step:
        prometheus = LocalPrometheus(directory, processes, step.tell)
        prometheus.start(targets, rules=rules)
        step.result = prometheus.base_url
    return prometheus
