"""One process of the serving plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from inference_blueprints.serving.types.callers import AdmittedCallers
from inference_blueprints.serving.types.process_parts import (
    CompiledArtefacts,
    EnginePort,
    EnvironmentValue,
    Image,
    Name,
    NonEmpty,
    NotNegative,
    Ports,
    Positive,
    Scaling,
)
from inference_contracts.door_identities import CALLERS_PORT
from inference_contracts.records import dataclass

Architecture = Literal["amd64", "arm64"]
#: A ``worker`` does prefill and decode.
Role = Literal["frontend", "worker", "prefill", "decode"]
#: Linux capability that a process may need.
Capability = Literal["IPC_LOCK"]


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """A health check over HTTP."""

    port: Name
    """Name of the port."""
    path: Annotated[str, Field(pattern="^/")]
    """Path that answers 200 if the process is healthy."""
    period_seconds: Positive
    """Time between two checks."""
    timeout_seconds: Positive
    """Longest time that an answer may take."""
    failure_threshold: Positive
    """Number of consecutive failures that count as unhealthy."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The health checks of a process; the startup check limits how long loading the weights may take."""

    startup: HttpProbe
    readiness: HttpProbe
    liveness: HttpProbe


@dataclass(frozen=True, slots=True)
class Accelerators:
    """What one process computes on."""

    resource_name: Annotated[str, Field(pattern="^[a-z0-9.-]+/[a-z0-9.-]+$")] | None
    """Kubernetes device resource, such as ``nvidia.com/gpu``. None for the processors of its node, all of
    which it has and none of which it requests as a device."""
    count: Positive
    """Number of devices on each of its nodes; 1 for processors."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A node taint that a process tolerates."""

    key: NonEmpty
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """`key`, `value`, `effect`: The taint's own fields."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Workers that attract another worker to their node, so that nodes fill up."""

    accelerators: Positive
    """Devices of each of these workers, which are in the same pool."""
    weight: Annotated[int, Field(ge=1, le=100)]
    """Weight of each of them, from 1 to 100."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one process on its node, or on each of its nodes."""

    cpu: Positive
    """Requested vCPUs."""
    memory_mib: Positive
    """Requested memory, which is also its limit, in MiB."""
    shared_memory_mib: NotNegative
    """Part of the memory that is mounted as /dev/shm, in MiB."""
    ephemeral_storage_mib: Positive
    """Disk for weights and caches, in MiB."""
    efa_interfaces: NotNegative
    """Number of EFA interfaces."""
    accelerators: Accelerators | None = None
    """Devices. None for a process that needs none."""

    @property
    def devices(self) -> int:
        """Devices that it requests: none if it computes on processors."""
        return self.accelerators.count if self.accelerators and self.accelerators.resource_name else 0


@dataclass(frozen=True, slots=True)
class Rollout:
    """Settings for replacing an old version with a new one."""

    max_surge: NotNegative
    """Processes above `replicas` during a rollout. 0 if the pool has no accelerators to spare."""
    max_unavailable: Positive
    """Processes below `replicas` during a rollout, and in a voluntary disruption of nodes."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The sizes behind a worker's engine arguments, for readers that do not parse arguments."""

    engine: str
    """Catalogue key of the engine, such as ``vllm``."""
    block_size: int
    """Tokens of a block of the KV cache."""
    max_model_len: int
    """Longest prompt and answer together, in tokens."""
    max_num_seqs: int
    """Sequences that each data parallel rank of a worker runs at once."""
    max_num_batched_tokens: int
    """Tokens that each rank processes in one step."""
    kv_blocks: int
    """KV cache blocks that fit each rank, from the memory estimate."""
    tensor_parallel_size: int
    """Accelerators that share the attention of each layer."""
    host_kv_blocks: int = 0
    """KV cache blocks that a worker keeps in the memory of its node."""
    pipeline_parallel_size: int = 1
    """Number of pipeline stages."""
    data_parallel_size: int = 1
    """Number of data parallel ranks, each with its own requests and KV cache."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A program in the pod of a process. It starts before the process and ends after it."""

    name: Name
    """Name within the process."""
    image: Image
    """Container image, by digest if one is known."""
    arguments: tuple[str, ...]
    """Command-line arguments, each flag and value a string of its own."""
    ports: Ports
    """Ports that it listens on."""
    cpu: Positive
    """Requested vCPUs."""
    memory_mib: Positive
    """Requested memory, which is also its limit, in MiB."""
    health_port: Name | None = None
    """Name of the port that answers gRPC's health protocol. None for a program without one."""
    address: Literal["127.0.0.1"] | None = None
    """Address at which it listens, if only the pod itself reaches it. None for every address of the pod."""
    certificates: bool = False
    """Whether it reads the certificate of its deployment, from `door_identities.FOLDER`."""


@dataclass(frozen=True, slots=True)
class NodeCacheBase:
    """The node's folder in which workers share weights and compiled kernels, as every target renders it."""

    host_folder: Annotated[str, Field(pattern="^/")]
    """The folder on the node."""
    compiled: NonEmpty
    """Name of the folder of the release's compiled kernels."""
    compiled_path: Annotated[str, Field(pattern="^/")]
    """Path at which the worker finds that folder."""
    cpu: Positive
    """vCPUs that the program requests that fills and holds the copy."""
    memory_mib: Positive
    """Memory that it requests, which is also its limit, in MiB."""
    fill_seconds: Positive
    """Longest time for one attempt to fill the copy."""
    weights: NonEmpty | None = None
    """Name of the folder of the weights. None for workers that read them from elsewhere."""
    weights_path: Annotated[str, Field(pattern="^/")] | None = None
    """Path at which the worker finds that folder, read-only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCache(NodeCacheBase):
    """The node's cache of a worker."""

    environment: Mapping[str, EnvironmentValue]
    """Source, bound and names, in the variables that ``runtime/weights`` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBase:
    """The part of a process that every target renders unchanged.

    Fields without a default are in the values of every chart. A field that has its default value is left out.
    """

    name: Name
    """Name within the deployment, such as ``frontend`` or ``worker``."""
    role: Role
    """Its role in the deployment."""
    image: Image
    """Container image, by digest if one is known."""
    command: tuple[str, ...]
    """Program and its fixed arguments."""
    arguments: tuple[str, ...]
    """Engine or router arguments, each flag and value a string of its own. ``$(NAME)`` in one is replaced by
    an environment value, as in Kubernetes."""
    ports: Ports
    """Ports that it listens on."""
    probes: Probes
    """Its health checks."""
    resources: Resources
    """Its resources on its node."""
    architecture: Architecture
    """Processor architecture of the image."""
    pool: NonEmpty | None = None
    """Pool whose nodes it runs on. None for the system nodes."""
    zone: NonEmpty | None = None
    """Availability zone that it prefers: the only one of the workers behind it. None without one."""
    tolerations: tuple[Toleration, ...]
    """Taints of the pool's nodes."""
    scheduler: NonEmpty | None = None
    """Scheduler of its pods on Kubernetes. None for that of the cluster."""
    priority_class: NonEmpty | None = None
    """Class of its pods on Kubernetes, by which the scheduler takes nodes from others. None outside pools
    that models share by the hour."""
    capabilities: tuple[Capability, ...] = ()
    """Linux capabilities that the container gets, such as ``IPC_LOCK``."""
    awaits_weights: NonEmpty | None = None
    """Release of the weights mirror that must be complete before it starts. None if it waits for none."""
    replicas: NotNegative
    """Number of replicas, or the smallest number of an elastic process. 0 only if it is lent to batch."""
    nodes: Positive = 1
    """Number of nodes that each replica spans, with one container on each."""
    follower_arguments: tuple[str, ...] = ()
    """Arguments of the containers on all its nodes except the first. Empty if the target sets them."""
    rollout: Rollout
    """Settings for replacing an old version with a new one."""
    termination_grace_seconds: Positive
    """Time for streams to end after SIGTERM, including `pre_stop_seconds`."""
    pre_stop_seconds: NotNegative
    """Time between the decision to stop and SIGTERM, in which load balancers stop sending requests."""
    sidecars: tuple[Sidecar, ...] = ()
    """Programs in the same pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process(ProcessBase):
    """One kind of process of a deployment, and its number of replicas."""

    environment: Mapping[str, EnvironmentValue]
    """Environment variables by name."""
    engine: EngineSettings | None = None
    """The sizes behind a worker's arguments. None for a process without an engine."""
    engine_ports: tuple[EnginePort, ...] = ()
    """Ports that its engine opens in addition to `ports` or that are among them, and where they are set."""
    neighbours: tuple[Neighbour, ...] = ()
    """Workers that it is placed beside, so that the pool's nodes hold all workers. Empty if it is spread
    instead."""
    node_cache: NodeCache | None = None
    """The folder of the node that it shares with other workers. None without one."""
    artefacts: CompiledArtefacts | None = None
    """What its compiler makes and keeps. None if it compiles nothing, or keeps nothing."""
    scaling: Scaling | None = None
    """How an elastic process grows and shrinks. None for a fixed number of replicas."""
    lent_most: Positive | None = None
    """Largest number of replicas if the capacity shift lends them to batch; `replicas` is the smallest. None
    for all others."""
    share: NotNegative | None = None
    """Replicas that count if the workers of a pool are added up that models share by the hour. None on other
    pools, where all count."""
    callers: AdmittedCallers | None = None
    """Who may call it behind the front door. Its program listens at the loopback address, and the sidecar
    ``callers``, whose configuration the target renders, at its first port and at that of callers. None
    without a front door."""
    has_python: bool = True
    """Whether its image has Python, in which programs of a target can run."""

    @property
    def called_port(self) -> int:
        """Port for the platform's own callers: behind a front door, that for which they have certificates."""
        return CALLERS_PORT if self.callers else self.ports[0].number

    @property
    def maximum(self) -> int:
        """Largest number of replicas."""
        return self.scaling.most if self.scaling else self.lent_most or self.replicas

    @property
    def pods(self) -> int:
        """Largest number of pods: one per replica and node."""
        return self.maximum * self.nodes

    @property
    def pods_together(self) -> int:
        """Pods that count if all workers of its pool are added up."""
        return (self.maximum if self.share is None else self.share) * self.nodes

    @property
    def is_worker(self) -> bool:
        """Whether it runs an engine."""
        return self.engine is not None
