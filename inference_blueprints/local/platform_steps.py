"""Parts of the steps that start a local platform."""

from __future__ import annotations

import shutil
from pathlib import Path

from inference_blueprints.deployment.cloudformation.stack_events import ResourceEvent
from inference_blueprints.local.control_plane import artefacts, build
from inference_blueprints.local.run_steps import Step, Steps

_KEPT = {"run.lock", "state.json"}


class DeploymentProgress:
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
            build.program(program, lambda line: step.update(detail=line))
        for files in (artefacts.KWOK_STAGES, *artefacts.CUSTOM_RESOURCES, *artefacts.CHARTS):
            build.module_files(files, lambda line: step.update(detail=line))
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
