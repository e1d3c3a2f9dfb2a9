"""Our programs inside a task definition, and what a task on Neuron has to keep compiled artefacts in S3."""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.ecs.task_environment import planned_environment
from inference_blueprints.render.ecs.tasks import (
    Dependency,
    RenderedContainer,
    TaskMount,
    TaskVolume,
)
from inference_blueprints.serving.packed_program import LOADER, packed_program
from inference_blueprints.serving.types import CompiledArtefacts, Process
from inference_contracts.ecs_names import MAIN_CONTAINER

#: Variable that holds the archive.
TASK_PROGRAM = "TASK_PROGRAM"
#: Entry point of a container that runs a program, in place of that of its image. That of AWS's images for
#: Neuron does not pass SIGTERM on (``common/vllm_entrypoint.py`` of aws-neuron/deep-learning-containers at
#: 2be9ed1).
PROGRAM_ENTRY_POINT = ("python3",)
# The process that the module starts or becomes does not inherit the variable.
_LOADER = LOADER.format(text=f'os.environ.pop("{TASK_PROGRAM}")')


def task_program(module: str) -> str:
    """Return the value of the variable: the same for the same files, so that it changes no task needlessly.

    module: The module that the container runs: ``task_start``, also for its health check, or
        ``task_start.node_fill``. ``task_targets`` needs an image with boto3.
    """
    return packed_program(module)


def program_arguments(module: str, *words: str) -> tuple[str, ...]:
    """Return what follows `PROGRAM_ENTRY_POINT` in a container that runs one of our programs.

    module, words: Those of `program_command`.
    """
    return tuple(program_command(module, *words)[len(PROGRAM_ENTRY_POINT) :])


def program_command(module: str, *words: str) -> list[str]:
    """Return the words of a process that runs one of our programs.

    module: ``task_start``, ``task_start.live_check`` or ``task_start.node_fill``.
    words: Its arguments.
    """
    return [*PROGRAM_ENTRY_POINT, "-c", _LOADER, module, *words]


# What a task on Neuron has to keep compiled artefacts in S3: ``runtime/weights/neuron_artefacts.py``.
#
# The artefacts are in a volume of the task alone (Amazon ECS Developer Guide, "Bind mount examples": an empty
# data volume), so that workers of one host do not share them. Docker gives such a volume to root, so the
# first container, as root without capabilities, lets the engine's user write to it.

#: Container that prepares the volume.
_OPEN_CONTAINER: Final = "artefacts-folder"
#: Container that ends with the artefacts in their folder, or when this worker is the one that compiles them.
LOAD_CONTAINER: Final = "artefacts-load"
#: Container that stores what this worker compiled, once its server is healthy.
_KEEP_CONTAINER: Final = "artefacts-keep"
_PROGRAM: Final = "weights.neuron_artefacts"
_CPU_UNITS, _MEMORY_MIB, _OPEN_MEMORY_MIB = 102, 512, 64
#: Another worker may compile for as long as its claim counts, and a container gets at most this time.
_LOAD_SECONDS: Final = 6 * 3600
_STOP_SECONDS: Final = 30
_VOLUME: Final = "artefacts"


def artefact_containers(process: Process, user: str) -> tuple[RenderedContainer, ...]:
    """Return the containers in the order of their start; none for a worker that keeps nothing.

    process: The worker.
    user: User and group of its engine.
    """
    kept = process.artefacts
    if kept is None:
        return ()
    return (
        RenderedContainer(
            name=_OPEN_CONTAINER,
            image=process.image,
            entry_point=("chmod",),
            command=("0777", kept.folder),
            essential=False,
            cpu_units=_CPU_UNITS,
            memory_mib=_OPEN_MEMORY_MIB,
            user="0:0",
            mounts=artefact_mounts(process),
            stop_timeout_seconds=_STOP_SECONDS,
        ),
        _container(process, kept, user, word="load"),
        _container(process, kept, user, word="keep"),
    )


def artefact_mounts(process: Process) -> tuple[TaskMount, ...]:
    """Return what the engine sees."""
    return (TaskMount(_VOLUME, process.artefacts.folder),) if process.artefacts else ()


def artefact_volumes(process: Process) -> tuple[TaskVolume, ...]:
    """Return the volumes of the task."""
    return (TaskVolume(_VOLUME),) if process.artefacts else ()


def _container(process: Process, kept: CompiledArtefacts, user: str, *, word: str) -> RenderedContainer:
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
            TASK_PROGRAM: task_program(_PROGRAM),
        },
        user=user,
        mounts=artefact_mounts(process),
        depends_on=(
            Dependency(_OPEN_CONTAINER, "SUCCESS") if loads else Dependency(MAIN_CONTAINER, "START"),
        ),
        start_timeout_seconds=_LOAD_SECONDS if loads else None,
        stop_timeout_seconds=_STOP_SECONDS,
    )
