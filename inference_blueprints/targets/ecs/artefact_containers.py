"""What a task on Neuron has to keep compiled artefacts in S3: ``runtime/weights/neuron_artefacts.py``.

The artefacts are in a folder of the host that has their key in its name, because a volume of the task alone
belongs to root, and the engine's user could not write to it. The first container makes the folder before
Docker would, and empties it. No second worker of the host uses it: each has all devices of its host.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from inference_blueprints.contracts.ecs_names import MAIN_CONTAINER, SHARED_FOLDER
from inference_blueprints.serving.types import CompiledArtefacts, Process
from inference_blueprints.targets.ecs.task_environment import planned_environment
from inference_blueprints.targets.ecs.task_program import (
    PROGRAM_ENTRY_POINT,
    TASK_PROGRAM,
    program_arguments,
    task_program,
)
from inference_blueprints.targets.ecs.tasks import (
    Dependency,
    RenderedContainer,
    TaskMount,
    TaskVolume,
)

#: Container that ends with the artefacts in their folder, or when this worker is the one that compiles them.
LOAD_CONTAINER: Final = "artefacts-load"
#: Container that stores what this worker compiled, once its server is healthy.
_KEEP_CONTAINER: Final = "artefacts-keep"
_PROGRAM: Final = "weights.neuron_artefacts"
_CPU_UNITS, _MEMORY_MIB = 102, 512
#: Another worker may compile for as long as its claim counts, and a container gets at most this time.
_LOAD_SECONDS: Final = 6 * 3600
_STOP_SECONDS: Final = 30
#: Name of the volume, and where the first container sees the folder that contains it.
_VOLUME, _HOST, _MOUNT = "artefacts", "artefacts-host", PurePosixPath("/host")


def artefact_containers(process: Process, user: str) -> tuple[RenderedContainer, ...]:
    """Return both containers; none for a worker that keeps nothing.

    Parameters
    ----------
    process
        The worker.
    user
        User and group of its engine.
    """
    kept = process.artefacts
    if kept is None:
        return ()
    return (
        _container(
            process,
            kept,
            user,
            word="load",
            mount=TaskMount(_HOST, str(_MOUNT)),
            folder=str(_MOUNT / _host_folder(kept)),
        ),
        _container(
            process, kept, user, word="keep", mount=TaskMount(_VOLUME, kept.folder), folder=kept.folder
        ),
    )


def artefact_mounts(process: Process) -> tuple[TaskMount, ...]:
    """Return what the engine sees."""
    return (TaskMount(_VOLUME, process.artefacts.folder),) if process.artefacts else ()


def artefact_volumes(process: Process) -> tuple[TaskVolume, ...]:
    """Return the volumes of the task."""
    if process.artefacts is None:
        return ()
    return (
        TaskVolume(_HOST, SHARED_FOLDER),
        TaskVolume(_VOLUME, f"{SHARED_FOLDER}/{_host_folder(process.artefacts)}"),
    )


def _host_folder(kept: CompiledArtefacts) -> str:
    return f"artefacts/{kept.key}"


def _container(
    process: Process, kept: CompiledArtefacts, user: str, *, word: str, mount: TaskMount, folder: str
) -> RenderedContainer:
    loads = word == "load"
    return RenderedContainer(
        name=LOAD_CONTAINER if loads else _KEEP_CONTAINER,
        image=process.image,
        entry_point=PROGRAM_ENTRY_POINT,
        command=program_arguments(_PROGRAM, word),
        essential=False,
        cpu_units=_CPU_UNITS,
        memory_mib=_MEMORY_MIB,
        environment={
            "PYTHONUNBUFFERED": "1",
            **planned_environment(kept.environment).values,
            "ARTEFACTS_FOLDER": folder,
            TASK_PROGRAM: task_program(_PROGRAM),
        },
        user=user,
        mounts=(mount,),
        depends_on=() if loads else (Dependency(MAIN_CONTAINER, "START"),),
        start_timeout_seconds=_LOAD_SECONDS if loads else None,
        stop_timeout_seconds=_STOP_SECONDS,
    )
