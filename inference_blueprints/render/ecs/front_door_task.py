"""The task of the front door on Fargate: the same programs as in its pods on EKS."""

from __future__ import annotations

import math
import shlex
from typing import Final

from inference_blueprints.render.ecs.tasks import (
    Dependency,
    RenderedContainer,
    RenderedTask,
    TaskHealth,
    TaskMount,
    TaskVolume,
)
from inference_blueprints.render.front_door import replica
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.render.front_door.replica import DoorReferences
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_catalog.ecs_hosts import fargate_size
from inference_contracts import door_identities
from inference_contracts.door_names import DOOR_PORT, entry_point_name
from inference_contracts.ecs_names import MAIN_CONTAINER
from inference_contracts.trace_names import traces_host_on_ecs

#: Name of the service and of its log streams.
DOOR_SERVICE: Final = "front-door"
#: Name of the container of the policy process.
POLICY: Final = "policy"
_CERTIFICATES: Final = "certificates"
_USER: Final = "1000:1000"
_CERTIFICATES_CPU_UNITS: Final = 32
#: The longest time that Fargate allows between SIGTERM and SIGKILL (Amazon ECS API, ContainerDefinition).
#: Envoy gets SIGTERM when the load balancer has no more requests of it: ECS waits for that (Amazon ECS Best
#: Practices Guide, "Load balancer connection draining"). Containers end in the opposite order of their
#: dependencies (Amazon ECS API, ContainerDependency), so the policy process settles what Envoy has logged.
_STOP_SECONDS: Final = 120
_ENVOY_STOP_SECONDS: Final = 15


def door_log_group(platform: str) -> str:
    """Return the name of the task's log group."""
    return f"/inference-blueprints/{platform}/front-door"


def ecs_places(door: DoorPlan) -> DoorPlaces:
    """Return where the replicas find what they need on ECS."""
    platform = door.configuration.platform
    return replica.door_places(
        door, lambda each: entry_point_name(platform, each.name), traces_host_on_ecs(platform)
    )


def front_door_task(door: DoorPlan, *, image: str, references: DoorReferences) -> RenderedTask:
    """Return the task.

    image: Image of all programs.
    references: What the stacks know.
    """
    policy, envoy = replica.policy_size(door), replica.envoy_size(door)
    memory = policy.memory_mib + envoy.memory_mib + replica.CERTIFICATES_MIB
    size = fargate_size(math.ceil(door.vcpus), memory)
    platform = door.configuration.platform
    certificates = RenderedContainer(
        name=_CERTIFICATES,
        image=image,
        command=tuple(replica.certificates_command()),
        cpu_units=_CERTIFICATES_CPU_UNITS,
        memory_mib=replica.CERTIFICATES_MIB,
        environment=replica.certificates_environment(references),
        user=_USER,
        mounts=(TaskMount("certificates", door_identities.FOLDER),),
        stop_timeout_seconds=_ENVOY_STOP_SECONDS,
        health=TaskHealth(tuple(replica.certificates_check()), 10, 5, 3, 60),
    )
    decides = RenderedContainer(
        name=POLICY,
        image=image,
        # The name of the task's host is the only one that a container knows of itself.
        command=("sh", "-c", f'DOOR_REPLICA="$(hostname)" exec {shlex.join(replica.policy_command())}'),
        cpu_units=policy.cpu_units - _CERTIFICATES_CPU_UNITS,
        memory_mib=policy.memory_mib,
        environment=replica.policy_environment(door, references),
        user=_USER,
        mounts=(
            TaskMount("run", replica.RUN_FOLDER),
            TaskMount("log", replica.LOG_FOLDER),
            TaskMount("state", replica.STATE_FOLDER),
        ),
        stop_timeout_seconds=_STOP_SECONDS,
        health=TaskHealth(tuple(replica.policy_check()), 10, 5, 3, 120),
    )
    main = RenderedContainer(
        name=MAIN_CONTAINER,
        image=image,
        command=tuple(replica.envoy_command(door, ecs_places(door))),
        cpu_units=envoy.cpu_units,
        memory_mib=envoy.memory_mib,
        user=_USER,
        port=DOOR_PORT,
        mounts=(
            TaskMount("run", replica.RUN_FOLDER),
            TaskMount("log", replica.LOG_FOLDER),
            TaskMount("certificates", door_identities.FOLDER, read_only=True),
        ),
        depends_on=(Dependency(_CERTIFICATES, "HEALTHY"), Dependency(POLICY, "HEALTHY")),
        stop_timeout_seconds=_ENVOY_STOP_SECONDS,
    )
    return RenderedTask(
        family=f"{platform}-{DOOR_SERVICE}",
        compute="fargate",
        network="awsvpc",
        architecture="amd64",
        cpu_units=size.cpu_units,
        memory_mib=size.memory_mib,
        containers=(main, decides, certificates),
        volumes=tuple(TaskVolume(each) for each in ("run", "log", "state", "certificates")),
        log_group=door_log_group(platform),
        log_prefix=DOOR_SERVICE,
    )
