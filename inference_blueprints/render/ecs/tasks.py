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
    """A variable with a certificate or the key for the discovery store."""

    key: str
    """Key in the secret: one of the values of ``discovery_secret_keys``."""


TaskValue = str | SecretValue | WeightsBucket | KvCacheBucket | DiscoverySecret


@dataclass(frozen=True, slots=True)
class TaskVolume:
    """A folder that containers of a task mount."""

    name: str
    """Name in the task."""
    host_folder: str | None = None
    """Folder of the host. None for a new folder of the task."""


@dataclass(frozen=True, slots=True)
class TaskMount:
    """Where a container finds a volume."""

    volume: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """The health check of a container."""

    command: tuple[str, ...]
    """Program that exits with 0 if the container is healthy, with its arguments."""
    interval_seconds: int
    timeout_seconds: int
    """`interval_seconds`, `timeout_seconds`: Time between two checks, 5 to 300, and the longest time of one,
    2 to 60."""
    retries: int
    """Consecutive failures that count as unhealthy, 1 to 10."""
    start_seconds: int
    """Time after the start in which failures do not count, up to 300."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another container of the task, and the state that it must have before this one starts."""

    container: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedContainer:
    """A container of a task."""

    name: str
    """Name in the task."""
    image: str
    """Image, by digest if one is known."""
    command: tuple[str, ...]
    """Program and arguments."""
    entry_point: tuple[str, ...] = ()
    """Program that runs instead of that of the image. Empty for that of the image."""
    essential: bool = True
    """Whether the task ends with it."""
    cpu_units: int
    """1024 for a vCPU."""
    memory_mib: int
    """Most memory that it may use."""
    reservation_mib: int | None = None
    """Memory that placement counts, beside the shared memory. None for all of it."""
    environment: Mapping[str, TaskValue] = field(default_factory=dict)
    """Variables by name."""
    user: str | None = None
    """User and group, by number. None for those of the image."""
    port: int | None = None
    """Port that others send requests to. None for a container that nobody reaches."""
    gpus: int = 0
    """GPUs that belong to it alone."""
    shared_memory_mib: int = 0
    """Size of /dev/shm. 0 for the default of the container runtime."""
    devices: tuple[str, ...] = ()
    """Devices of the host that it may read and write."""
    capabilities: tuple[Capability, ...] = ()
    """Linux capabilities that it has. All others are dropped."""
    locks_memory: bool = False
    """Whether it may lock memory without a limit, as EFA needs."""
    mounts: tuple[TaskMount, ...] = ()
    """Folders that it finds."""
    depends_on: tuple[Dependency, ...] = ()
    """Containers that it waits for."""
    start_timeout_seconds: int | None = None
    """Longest time that containers which wait for it wait. None for ECS's default."""
    stop_timeout_seconds: int
    """Time between SIGTERM and SIGKILL."""
    health: TaskHealth | None = None
    """Health check. None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedTask:
    """A task definition."""

    family: str
    """Name of the task definition: platform, release and process."""
    compute: Compute
    """What runs its tasks."""
    network: TaskNetwork | Literal["bridge"]
    """Network mode: an address of its own on Fargate and Managed Instances, that of the host for workers of
    other hosts, or Docker's bridge for other programs of a host, where the host's port leads to the
    container's."""
    architecture: Architecture
    """Processor architecture."""
    cpu_units: int | None = None
    memory_mib: int | None = None
    """`cpu_units`, `memory_mib`: Size of a task of Fargate. None on hosts, where the containers have
    sizes."""
    ephemeral_storage_gib: int | None = None
    """Disk of a task of Fargate. None for the 20 GiB that every task has."""
    containers: tuple[RenderedContainer, ...]
    volumes: tuple[TaskVolume, ...] = ()
    """Folders that they share."""
    log_group: str
    log_prefix: str
    """Prefix of its log streams."""
