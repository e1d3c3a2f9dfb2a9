"""What the control plane knows of one cluster: container instances, tasks, services, capacity providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

Shape = Mapping[str, Any]


class TaskStatus(StrEnum):
    """The life of a task, in order.

    Source: AWS, "Amazon ECS task lifecycle" (task-lifecycle-explanation.html).
    """

    PROVISIONING = "PROVISIONING"
    PENDING = "PENDING"
    ACTIVATING = "ACTIVATING"
    RUNNING = "RUNNING"
    DEACTIVATING = "DEACTIVATING"
    STOPPING = "STOPPING"
    DEPROVISIONING = "DEPROVISIONING"
    STOPPED = "STOPPED"


STARTING: Final = frozenset({TaskStatus.PROVISIONING, TaskStatus.PENDING, TaskStatus.ACTIVATING})


class StopCode(StrEnum):
    """Why a task ended. Source: API Task, stopCode."""

    FAILED_TO_START = "TaskFailedToStart"
    ESSENTIAL_EXITED = "EssentialContainerExited"
    USER = "UserInitiated"
    SCHEDULER = "ServiceSchedulerInitiated"
    SPOT = "SpotInterruption"
    TERMINATION = "TerminationNotice"


class Health(StrEnum):
    """Health of a container or a task. Source: API HealthCheck."""

    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Needs:
    """What a task takes from the instance that it is placed on."""

    cpu: int
    """CPU units, 1,024 per vCPU."""
    memory_mib: int
    """In MiB, with shared memory."""
    gpus: int
    """Number of GPUs."""
    ports: frozenset[int]
    """Ports of the host that its port mappings reserve."""


@dataclass
class EcsInstance:
    """A container instance."""

    identifier: str
    """Last part of its ARN."""
    ec2_id: str
    """Id of its EC2 instance."""
    address: str
    """Its loopback address."""
    provider: str
    """Its capacity provider."""
    instance_type: str
    zone: str
    cpu: int
    memory_mib: int
    gpu_ids: tuple[str, ...]
    """`cpu`, `memory_mib`, `gpu_ids`: What it registered."""
    registered_at: float
    """Seconds of the control plane's clock."""
    status: str = "ACTIVE"
    agent_connected: bool = True
    own_attributes: Mapping[str, str] = field(default_factory=dict)
    efa_interfaces: int = 0
    """EFA interfaces of its launch template."""

    @property
    def takes_tasks(self) -> bool:
        """Whether new tasks may be placed here.

        Source: API ContainerInstance, agentConnected: "Only instances connected to an agent can accept task
        placement requests"; API UpdateContainerInstancesState: none on instances that drain.
        """
        return self.status == "ACTIVE" and self.agent_connected

    @property
    def attributes(self) -> dict[str, str]:
        """What ECS gives each instance (task-placement-constraints.html), and what its agent adds."""
        return {
            "ecs.availability-zone": self.zone,
            "ecs.instance-type": self.instance_type,
            "ecs.os-type": "linux",
            "ecs.cpu-architecture": "x86_64",
            **self.own_attributes,
        }


@dataclass
class ContainerState:
    """What the agent last said of a container."""

    status: str = "PENDING"
    health: Health = Health.UNKNOWN
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class TaskEnd:
    """Why a task ended, as the agent tells."""

    code: StopCode
    reason: str


@dataclass
class EcsTask:
    """A task."""

    identifier: str
    """Last part of its ARN."""
    definition: Shape
    """The task definition as the API describes it."""
    needs: Needs
    service: str
    """Name of the service that it belongs to, or an empty string."""
    deployment: str
    """Id of the service's deployment that started it."""
    provider: str
    """Its capacity provider."""
    created_at: float
    """Seconds of the control plane's clock; so are all times."""
    overrides: Shape = field(default_factory=dict)
    group: str = ""
    started_by: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    status: TaskStatus = TaskStatus.PROVISIONING
    wanted: TaskStatus = TaskStatus.RUNNING
    health: Health = Health.UNKNOWN
    instance: str | None = None
    gpu_ids: tuple[str, ...] = ()
    address: str = ""
    containers: dict[str, ContainerState] = field(default_factory=dict)
    pending_at: float | None = None
    running_at: float | None = None
    stopping_at: float | None = None
    stopped_at: float | None = None
    stop_code: StopCode | None = None
    stopped_reason: str | None = None
    protected_until: float | None = None
    """End of its protection from scale-in."""
    failure_counted: bool = False
    """Whether the circuit breaker has judged it: once healthy, or once failed."""
    target_healthy: bool = True
    runs_commands: bool = False
    """Whether ECS Exec may run commands in it (``enableExecuteCommand`` when it was started)."""
    version: int = 1

    @property
    def is_live(self) -> bool:
        """Whether it is wanted and has not ended."""
        return self.wanted is TaskStatus.RUNNING and self.status is not TaskStatus.STOPPED

    def is_protected(self, now: float) -> bool:
        """Whether scale-in and deployments leave it alone (API UpdateTaskProtection)."""
        return self.protected_until is not None and now < self.protected_until


@dataclass
class EcsDeployment:
    """A deployment of a service. Source of the states: API Deployment, status and rolloutState."""

    identifier: str
    task_definition: str
    created_at: float
    status: str = "PRIMARY"
    rollout_state: str = "IN_PROGRESS"
    rollout_reason: str = ""
    failed_tasks: int = 0
    breaker_count: int = 0
    retry_at: float = 0.0
    failed_starts: int = 0


@dataclass
class EcsService:
    """A service."""

    name: str
    request: dict[str, Any]
    """What CreateService and UpdateService gave, in the API's names."""
    created_at: float
    status: str = "ACTIVE"
    deployments: list[EcsDeployment] = field(default_factory=list)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    """Time, id and message, the newest first."""
    tags: dict[str, str] = field(default_factory=dict)
    was_steady: bool = False

    @property
    def desired(self) -> int:
        """The desired number of tasks."""
        return int(self.request.get("desiredCount", 1)) if self.status == "ACTIVE" else 0

    @property
    def primary(self) -> EcsDeployment:
        """The deployment whose tasks are wanted."""
        return next(each for each in self.deployments if each.status == "PRIMARY")


@dataclass(frozen=True)
class LaunchAttempt:
    """An activity of an Auto Scaling group (Amazon EC2 Auto Scaling API Reference, Activity)."""

    at: float
    """When, by the control plane's clock."""
    ec2_id: str = ""
    """The instance that started. Empty if none did."""
    refusal: str = ""
    """EC2's answer if none did."""


@dataclass
class HostPool:
    """A capacity provider that is not Fargate."""

    name: str
    request: Shape
    """What CreateCapacityProvider gave, in the API's names."""
    instance_types: tuple[str, ...]
    """Types that it may launch, the wanted one first."""
    zones: tuple[str, ...]
    """Availability zones that it may use."""
    minimum: int = 0
    maximum: int | None = None
    """`minimum`, `maximum`: Bounds of its Auto Scaling group. Managed Instances have no bounds: 0 and
    None."""
    wanted: int = 0
    """Number of instances that the group is asked for."""
    launches_blocked: bool = False
    """Whether EC2 starts no host for it: a fault that tests set."""
    refusal: str = ""
    """What EC2 answers then. Empty for too little capacity."""
    launches: list[LaunchAttempt] = field(default_factory=list)
    """Attempts of its group to start a host, the newest first."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes that the agents of its hosts add."""
    efa_interfaces: int = 0
    """EFA interfaces of each host."""
    empty_since: dict[str, float] = field(default_factory=dict)


@dataclass
class ClusterState:
    """Everything of one cluster, by name or id."""

    name: str
    instances: dict[str, EcsInstance] = field(default_factory=dict)
    tasks: dict[str, EcsTask] = field(default_factory=dict)
    services: dict[str, EcsService] = field(default_factory=dict)
    pools: dict[str, HostPool] = field(default_factory=dict)

    def tasks_of(self, service: str) -> list[EcsTask]:
        """Return the tasks of a service that have not stopped, the oldest first."""
        return [
            task
            for task in self.tasks.values()
            if task.service == service and task.status is not TaskStatus.STOPPED
        ]

    def tasks_on(self, instance: str) -> list[EcsTask]:
        """Return the tasks on an instance that have not stopped."""
        return [
            task
            for task in self.tasks.values()
            if task.instance == instance and task.status is not TaskStatus.STOPPED
        ]
