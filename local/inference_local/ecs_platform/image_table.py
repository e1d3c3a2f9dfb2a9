"""The images of a platform's tasks, and the programs of this machine that stand for each.

=========================== ======== ====================================================================
Image                       State    What runs
=========================== ======== ====================================================================
Dynamo's frontend           real     Dynamo's frontend and router, of the pinned release
etcd                        real     etcd, built from its Go module
busybox                     real     this machine's ``sh`` and ``wget``
Python                      real     this machine's Python, with the program of the task definition
Prometheus                  real     Prometheus 3, built from its Go module
CloudWatch agent            absent   a process that does nothing: no recorded series reaches CloudWatch
NVIDIA's exporter           stand-in lists the GPUs of its host
batch workers'              real     the workers' package in this machine's Python
an engine's                 stand-in its Python runs the programs of the task; the engine is simulated, and an
                                     engine's own server is scripted
=========================== ======== ====================================================================
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.render.ecs.task_environment import CACHE_FOLDER, FILES_FOLDER
from inference_blueprints.serving.resolved import shape_of
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.source import find
from inference_catalog.ecs_images import ecs_image, etcd_image, shell_image
from inference_contracts.errors import UserError
from inference_local.control_plane import artefacts, build
from inference_local.ecs_platform import engine_stand_in, gpu_exporter, server_stand_in
from inference_local.emulator.ecs.agent.container_command import StandInImage, repository_of
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.simulated_kind import SimulatedKind
from inference_runtime import runtime_directory

#: Variables of Dynamo's images that have another value here, with the reason.
EXCEPTIONS: Mapping[str, tuple[str, str]] = {
    "HF_HUB_OFFLINE": ("1", "every process reads the model's files from a folder; nothing is downloaded"),
    "DYN_SELF_HOST_METADATA": ("0", "frontends read the model's files from the same folder as workers"),
}
#: The platform's own repositories: the image of batch workers is the only one that a platform on ECS builds.
_BUILT_IMAGES = "*.dkr.ecr.*"
_PROMETHEUS_DATA = "/prometheus"
_ETCD = "/usr/local/bin/etcd"
_PROMETHEUS = """#!/bin/sh
# The image's entry point. The program that is built here takes three words; retention is not limited.
for word in "$@"; do
  case "$word" in
  --config.file=*) configuration="${{word#*=}}" ;;
  --storage.tsdb.path=*) storage="${{word#*=}}" ;;
  --web.listen-address=*) address="${{word#*=}}" ;;
  esac
done
exec {prometheus} serve "$configuration" "$storage" "$address"
"""
_SERVER = """#!/bin/sh
exec {python} -m {stand_in} "$@"
"""
_PYTHON = """#!/bin/sh
# The image's Python. The engine's module is replaced, everything else runs as it is.
case "$1 $2" in
"-m dynamo.frontend") ;;
"-m dynamo."*) exec {python} -m {stand_in} "$@" ;;
esac
exec {python} "$@"
"""


def task_images(
    loaded: LoadedBlueprint, plan: ServingPlan, directory: Path, report: Callable[[str], None]
) -> dict[str, StandInImage]:
    """Prepare the programs, and return them by the repository of their image.

    directory: Folder for programs and the files of models.
    report: Called with a line of progress.
    Raises UserError if this machine has no `wget`, or etcd cannot be built.
    """
    if shutil.which("wget") is None:
        raise UserError("tasks of the discovery store are watched with `wget`, which is not installed here")
    blueprint = loaded.blueprint
    shapes = {model.name: shape_of(model.weights) for model in blueprint.spec.models}
    engines = SimulatedKind(blueprint)
    for model in plan.models:
        for deployment in LocalTarget(blueprint, engines).render(model):
            engines.write_model(deployment, shapes[model.name], directory / deployment.plan.release / "model")
    programs = directory / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    python = programs / "python3"
    python.write_text(_PYTHON.format(python=sys.executable, stand_in=engine_stand_in.__name__))
    python.chmod(0o755)
    servers = {}
    for path in server_stand_in.SERVERS:
        server = programs / Path(path).name
        server.write_text(_SERVER.format(python=sys.executable, stand_in=server_stand_in.__name__))
        server.chmod(0o755)
        servers[path] = str(server)
    engine = StandInImage(
        folders=(str(programs),),
        programs=servers,
        scratch=(CACHE_FOLDER, FILES_FOLDER),
        environment={
            **{name: value for name, (value, _) in EXCEPTIONS.items()},
            "PYTHONPATH": os.pathsep.join(sys.path),
            engine_stand_in.STAND_IN_VARIABLE: engine_stand_in.document(
                find(loaded.file).resolve(), directory
            ),
        },
    )
    etcd = build.program(artefacts.ETCD, report) / artefacts.ETCD.name
    images = {
        repository_of(process.image): engine
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
    }
    images[repository_of(etcd_image())] = StandInImage(programs={_ETCD: str(etcd)})
    images[repository_of(shell_image())] = StandInImage()
    images[_BUILT_IMAGES] = StandInImage(
        folders=(str(programs),), environment={"PYTHONPATH": str(runtime_directory())}
    )
    # Of the discovery store's roles, and of the task that measures the platform.
    images[repository_of(ecs_image("python"))] = StandInImage(folders=(str(programs),))
    if blueprint.spec.observability:
        images |= _metrics_images(directory / "metrics-programs", report)
    return images


def _metrics_images(folder: Path, report: Callable[[str], None]) -> dict[str, StandInImage]:
    """Return the images of the task that measures the platform."""
    prometheus = build.program(artefacts.PROMETHEUS, report) / artefacts.PROMETHEUS.name
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "prometheus"
    script.write_text(_PROMETHEUS.format(prometheus=prometheus))
    script.chmod(0o755)
    return {
        repository_of(ecs_image("prometheus")): StandInImage(
            entry_point=(str(script),), scratch=(_PROMETHEUS_DATA,)
        ),
        repository_of(ecs_image("cloudwatch-agent")): StandInImage(command=("sleep", "infinity")),
        repository_of(ecs_image("dcgm-exporter")): StandInImage(
            entry_point=(sys.executable, "-m", gpu_exporter.__name__),
            environment={"PYTHONPATH": os.pathsep.join(sys.path)},
        ),
    }
