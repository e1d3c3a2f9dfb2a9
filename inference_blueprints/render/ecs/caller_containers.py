"""Containers of a task whose entry point admits known callers only."""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.callers.keeper import (
    KEEPER,
    KEEPER_COMMAND,
    READY_COMMAND,
    keeper_environment,
    keeper_image,
)
from inference_blueprints.render.callers.sidecar import rendered_sidecars
from inference_blueprints.render.ecs.tasks import (
    CertificateSecret,
    Dependency,
    RenderedContainer,
    TaskHealth,
    TaskMount,
    TaskVolume,
)
from inference_blueprints.serving.stacks.known_callers import CALLERS_SIDECAR, KEEPER_MEMORY_MIB
from inference_blueprints.serving.types import Process
from inference_contracts.door_identities import FOLDER, SECRET_VARIABLE

KEEPER_CPU_UNITS: Final = 51
_STOP_SECONDS: Final = 30
#: Docker gives a new volume to root, so the program that writes it is root, without any capability (Amazon
#: ECS Developer Guide, "Bind mounts"). Only it and Envoy mount the volume.
_KEEPER_USER: Final = "0:0"
#: User of Envoy's image without a distribution.
_ENVOY_USER: Final = "65532:65532"


def keeper_container(name: str) -> RenderedContainer:
    """Return the container that keeps a certificate, in the volume `KEEPER`.

    name: Whose certificate it is: a caller, or the release of a deployment.
    """
    return RenderedContainer(
        name=KEEPER,
        image=keeper_image(),
        entry_point=KEEPER_COMMAND[:1],
        command=KEEPER_COMMAND[1:],
        cpu_units=KEEPER_CPU_UNITS,
        memory_mib=KEEPER_MEMORY_MIB,
        environment={**keeper_environment(""), SECRET_VARIABLE: CertificateSecret(name)},
        user=_KEEPER_USER,
        mounts=(TaskMount(KEEPER, FOLDER),),
        health=TaskHealth(READY_COMMAND, 10, 5, 3, 300),
        stop_timeout_seconds=_STOP_SECONDS,
    )


def caller_containers(process: Process) -> tuple[RenderedContainer, ...]:
    """Return the containers in the order of their start; none without a front door.

    Containers end in the opposite order of their dependencies (Amazon ECS API, ContainerDependency), so Envoy
    runs until the program behind it has ended.
    """
    if process.callers is None:
        return ()
    [sidecar] = [each for each in rendered_sidecars(process) if each.name == CALLERS_SIDECAR]
    return (
        keeper_container(process.callers.release),
        RenderedContainer(
            name=CALLERS_SIDECAR,
            image=sidecar.image,
            command=sidecar.arguments,
            cpu_units=sidecar.cpu * 1024 - KEEPER_CPU_UNITS,
            memory_mib=sidecar.memory_mib,
            user=_ENVOY_USER,
            mounts=(TaskMount(KEEPER, FOLDER, read_only=True),),
            depends_on=(Dependency(KEEPER, "HEALTHY"),),
            stop_timeout_seconds=_STOP_SECONDS,
        ),
    )


def caller_volumes(process: Process) -> tuple[TaskVolume, ...]:
    """Return the volumes of the task."""
    return (TaskVolume(KEEPER),) if process.callers else ()


def after_callers(process: Process) -> tuple[Dependency, ...]:
    """Return what the program waits for."""
    return (Dependency(CALLERS_SIDECAR, "START"),) if process.callers else ()
