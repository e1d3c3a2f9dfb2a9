"""A task definition as data, and as a request of RegisterTaskDefinition (Amazon ECS API Reference)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

from inference_blueprints.serving.types import (
    Architecture,
    Capability,
    KvCacheBucket,
    SecretValue,
    WeightsBucket,
)
from inference_contracts.records import dataclass
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


@dataclass(frozen=True, slots=True)
class CertificateSecret:
    """A variable with the ARN of the secret that has a certificate."""

    owner: str
    """Whose certificate it is: a caller, or the release of a deployment."""


TaskValue = str | SecretValue | WeightsBucket | KvCacheBucket | DiscoverySecret | CertificateSecret


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
    runs_commands: bool = False
    """Whether ECS Exec may run commands in its containers."""


_ARCHITECTURES: Mapping[Architecture, str] = MappingProxyType({"amd64": "X86_64", "arm64": "ARM64"})
_COMPATIBILITIES: Mapping[Compute, str] = MappingProxyType(
    {"fargate": "FARGATE", "managed": "MANAGED_INSTANCES", "group": "EC2"}
)
# Logs that wait to be sent. When it is full, lines are lost and the engine goes on.
_LOG_BUFFER = "25m"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReferences:
    """What the stacks know, and a rendered task only names."""

    region: str
    """Region of the logs."""
    task_role_arn: str | None
    """Role of the programs. None for programs that call nothing of AWS."""
    execution_role_arn: str
    """Role with which ECS pulls images, reads secrets and writes logs."""
    discovery_secret: Callable[[str], str]
    """Returns ``valueFrom`` of a key of the secret for the discovery store."""
    weights_bucket: str | None = None
    kv_cache_bucket: str | None = None
    """`weights_bucket`, `kv_cache_bucket`: Names of the buckets. None if the model has none."""
    certificate_arns: Mapping[str, str] = field(default_factory=dict)
    """ARN of the secret with each certificate, by its owner. Empty without a front door."""


def to_register(task: RenderedTask, references: TaskReferences) -> dict[str, Any]:
    """Return the request that registers a task definition.

    references: ARNs and names, which may be references of CloudFormation.
    Raises ValueError if a container reads a bucket that the model does not have.
    """
    sizes = {"cpu": task.cpu_units, "memory": task.memory_mib}
    storage = {"sizeInGiB": task.ephemeral_storage_gib} if task.ephemeral_storage_gib else None
    return _given(
        family=task.family,
        networkMode=task.network,
        requiresCompatibilities=[_COMPATIBILITIES[task.compute]],
        runtimePlatform={
            "cpuArchitecture": _ARCHITECTURES[task.architecture],
            "operatingSystemFamily": "LINUX",
        },
        **{name: str(value) for name, value in sizes.items() if value is not None},
        ephemeralStorage=storage,
        taskRoleArn=references.task_role_arn,
        executionRoleArn=references.execution_role_arn,
        volumes=[
            {"name": each.name, "host": {"sourcePath": each.host_folder}}
            if each.host_folder
            # An empty `host` is a new folder; on Fargate the field is left out.
            else {"name": each.name}
            for each in task.volumes
        ],
        containerDefinitions=[_container(task, each, references) for each in task.containers],
    )


def _container(
    task: RenderedTask, container: RenderedContainer, references: TaskReferences
) -> dict[str, Any]:
    plain, secret = _environment(container.environment, references)
    memory = container.memory_mib
    return _given(
        name=container.name,
        image=container.image,
        entryPoint=list(container.entry_point),
        command=list(container.command),
        essential=container.essential,
        user=container.user,
        cpu=container.cpu_units,
        memory=memory,
        memoryReservation=container.reservation_mib,
        environment=[{"name": name, "value": plain[name]} for name in sorted(plain)],
        secrets=[{"name": name, "valueFrom": secret[name]} for name in sorted(secret)],
        portMappings=[_port(task, container.port)] if container.port else None,
        resourceRequirements=[{"type": "GPU", "value": str(container.gpus)}] if container.gpus else None,
        linuxParameters=_linux_parameters(task, container),
        ulimits=[{"name": "memlock", "softLimit": -1, "hardLimit": -1}] if container.locks_memory else None,
        mountPoints=[
            {"sourceVolume": each.volume, "containerPath": each.path, "readOnly": each.read_only}
            for each in container.mounts
        ],
        dependsOn=[
            {"containerName": each.container, "condition": each.condition} for each in container.depends_on
        ],
        startTimeout=container.start_timeout_seconds,
        stopTimeout=container.stop_timeout_seconds,
        healthCheck=_health(container.health) if container.health else None,
        logConfiguration={
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": task.log_group,
                "awslogs-region": references.region,
                "awslogs-stream-prefix": task.log_prefix,
                "mode": "non-blocking",
                "max-buffer-size": _LOG_BUFFER,
            },
        },
    )


def _port(task: RenderedTask, port: int) -> dict[str, Any]:
    """Return the mapping of a port. On the bridge, the host's port would be any free one (PortMapping)."""
    on_host = {"hostPort": port} if task.network == "bridge" else {}
    return {"containerPort": port, "protocol": "tcp", **on_host}


def _linux_parameters(task: RenderedTask, container: RenderedContainer) -> dict[str, Any]:
    """Return the parameters of Linux. Fargate can add only SYS_PTRACE (API reference, KernelCapabilities)."""
    added = {"add": list(container.capabilities)} if container.capabilities else {}
    return _given(
        # The engine must be the process that gets SIGTERM. With ECS Exec, an init process passes it on, and
        # waits for what commands leave behind (Amazon ECS Developer Guide, ECS Exec).
        initProcessEnabled=task.runs_commands,
        capabilities={"drop": ["ALL"], **added},
        sharedMemorySize=(container.shared_memory_mib or None) if task.compute == "group" else None,
        devices=[
            {"hostPath": device, "containerPath": device, "permissions": ["read", "write"]}
            for device in container.devices
        ],
    )


def _health(health: TaskHealth) -> dict[str, Any]:
    return {
        "command": ["CMD", *health.command],
        "interval": health.interval_seconds,
        "timeout": health.timeout_seconds,
        "retries": health.retries,
        "startPeriod": health.start_seconds,
    }


def _environment(
    environment: Mapping[str, TaskValue], references: TaskReferences
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables with plain values, and those that ECS reads from secrets."""
    plain: dict[str, str] = {}
    secret: dict[str, str] = {}
    for name, value in environment.items():
        match value:
            case SecretValue():
                secret[name] = value.arn
            case DiscoverySecret():
                secret[name] = references.discovery_secret(value.key)
            case WeightsBucket():
                plain[name] = _known(name, references.weights_bucket)
            case KvCacheBucket():
                plain[name] = _known(name, references.kv_cache_bucket)
            case CertificateSecret():
                plain[name] = references.certificate_arns[value.owner]
            case str():
                plain[name] = value
    return plain, secret


def _known(variable: str, bucket: str | None) -> str:
    if bucket is None:
        raise ValueError(f"{variable} is the name of a bucket that the model does not have")
    return bucket


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value not in (None, [], {})} | {
        name: value for name, value in fields.items() if value is False
    }
