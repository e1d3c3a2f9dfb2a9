"""A task definition as data: without the CDK, so that ``validate`` and the tests can look at it.

Names are those of RegisterTaskDefinition (Amazon ECS API Reference), with units. Values of variables are
texts, or one of the plan's values that the stacks resolve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from inference_blueprints.serving.types import (
    Architecture,
    Capability,
    KvCacheBucket,
    SecretValue,
    WeightsBucket,
)
from inference_contracts.task_start import TaskNetwork

#: What runs the tasks of a service: Fargate, Managed Instances, or hosts of an Auto Scaling group.
Compute = Literal["fargate", "managed", "group"]
#: State of another container that a container waits for.
Condition = Literal["START", "COMPLETE", "SUCCESS", "HEALTHY"]


@dataclass(frozen=True, slots=True)
class DiscoverySecret:
    """A variable with a certificate or the key for the discovery store.

    Parameters
    ----------
    key
        Key in the secret: one of the values of ``discovery_secret_keys``.
    """

    key: str


TaskValue = str | SecretValue | WeightsBucket | KvCacheBucket | DiscoverySecret


@dataclass(frozen=True, slots=True)
class TaskVolume:
    """A folder that containers of a task mount.

    Parameters
    ----------
    name
        Name in the task.
    host_folder
        Folder of the host. None for a new folder of the task.
    """

    name: str
    host_folder: str | None = None


@dataclass(frozen=True, slots=True)
class TaskMount:
    """Where a container finds a volume."""

    volume: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """The health check of a container.

    Parameters
    ----------
    command
        Program that exits with 0 if the container is healthy, with its arguments.
    interval_seconds, timeout_seconds
        Time between two checks, 5 to 300, and the longest time of one, 2 to 60.
    retries
        Consecutive failures that count as unhealthy, 1 to 10.
    start_seconds
        Time after the start in which failures do not count, up to 300.
    """

    command: tuple[str, ...]
    interval_seconds: int
    timeout_seconds: int
    retries: int
    start_seconds: int


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another container of the task, and the state that it must have before this one starts."""

    container: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedContainer:
    """A container of a task.

    Parameters
    ----------
    name
        Name in the task.
    image
        Image, by digest if one is known.
    command
        Program and arguments.
    entry_point
        Program that runs instead of that of the image. Empty for that of the image.
    essential
        Whether the task ends with it.
    cpu_units
        1024 for a vCPU.
    memory_mib
        Most memory that it may use.
    reservation_mib
        Memory that placement counts, beside the shared memory. None for all of it.
    environment
        Variables by name.
    user
        User and group, by number. None for those of the image.
    port
        Port that others send requests to. None for a container that nobody reaches.
    gpus
        GPUs that belong to it alone.
    shared_memory_mib
        Size of /dev/shm. 0 for the default of the container runtime.
    devices
        Devices of the host that it may read and write.
    capabilities
        Linux capabilities that it has. All others are dropped.
    locks_memory
        Whether it may lock memory without a limit, as EFA needs.
    mounts
        Folders that it finds.
    depends_on
        Containers that it waits for.
    start_timeout_seconds
        Longest time that containers which wait for it wait. None for ECS's default.
    stop_timeout_seconds
        Time between SIGTERM and SIGKILL.
    health
        Health check. None without one.
    """

    name: str
    image: str
    command: tuple[str, ...]
    entry_point: tuple[str, ...] = ()
    essential: bool = True
    cpu_units: int
    memory_mib: int
    reservation_mib: int | None = None
    environment: Mapping[str, TaskValue] = field(default_factory=dict)
    user: str | None = None
    port: int | None = None
    gpus: int = 0
    shared_memory_mib: int = 0
    devices: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    locks_memory: bool = False
    mounts: tuple[TaskMount, ...] = ()
    depends_on: tuple[Dependency, ...] = ()
    start_timeout_seconds: int | None = None
    stop_timeout_seconds: int
    health: TaskHealth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedTask:
    """A task definition.

    Parameters
    ----------
    family
        Name of the task definition: platform, release and process.
    compute
        What runs its tasks.
    network
        Network mode: an address of its own on Fargate and Managed Instances, that of the host for workers
        of other hosts, or Docker's bridge for other programs of a host, where the host's port leads to the
        container's.
    architecture
        Processor architecture.
    cpu_units, memory_mib
        Size of a task of Fargate. None on hosts, where the containers have sizes.
    ephemeral_storage_gib
        Disk of a task of Fargate. None for the 20 GiB that every task has.
    containers
        Its containers.
    volumes
        Folders that they share.
    log_group
        Group of its logs.
    log_prefix
        Prefix of its log streams.
    """

    family: str
    compute: Compute
    network: TaskNetwork | Literal["bridge"]
    architecture: Architecture
    cpu_units: int | None = None
    memory_mib: int | None = None
    ephemeral_storage_gib: int | None = None
    containers: tuple[RenderedContainer, ...]
    volumes: tuple[TaskVolume, ...] = ()
    log_group: str
    log_prefix: str
