"""One process of the serving plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from inference_blueprints.serving.types.constraints import Image, Name, NonEmpty, NotNegative, Positive
from inference_blueprints.serving.types.kept_artefacts import CompiledArtefacts
from inference_blueprints.serving.types.ports import EnginePort, Ports
from inference_blueprints.serving.types.scaling import Scaling
from inference_blueprints.serving.types.values import EnvironmentValue

Architecture = Literal["amd64", "arm64"]
#: A ``worker`` does prefill and decode.
Role = Literal["frontend", "worker", "prefill", "decode"]
#: Linux capability that a process may need.
Capability = Literal["IPC_LOCK"]


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """A health check over HTTP.

    Parameters
    ----------
    port
        Name of the port.
    path
        Path that answers 200 if the process is healthy.
    period_seconds
        Time between two checks.
    timeout_seconds
        Longest time that an answer may take.
    failure_threshold
        Number of consecutive failures that count as unhealthy.
    """

    port: Name
    path: Annotated[str, Field(pattern="^/")]
    period_seconds: Positive
    timeout_seconds: Positive
    failure_threshold: Positive


@dataclass(frozen=True, slots=True)
class Probes:
    """The health checks of a process; the startup check limits how long loading the weights may take."""

    startup: HttpProbe
    readiness: HttpProbe
    liveness: HttpProbe


@dataclass(frozen=True, slots=True)
class Accelerators:
    """What one process computes on.

    Parameters
    ----------
    resource_name
        Kubernetes device resource, such as ``nvidia.com/gpu``. None for the processors of its node, all of
        which it has and none of which it requests as a device.
    count
        Number of devices on each of its nodes; 1 for processors.
    """

    resource_name: Annotated[str, Field(pattern="^[a-z0-9.-]+/[a-z0-9.-]+$")] | None
    count: Positive


@dataclass(frozen=True, slots=True)
class Toleration:
    """A node taint that a process tolerates.

    Parameters
    ----------
    key, value, effect
        The taint's own fields.
    """

    key: NonEmpty
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Workers that attract another worker to their node, so that nodes fill up.

    Parameters
    ----------
    accelerators
        Devices of each of these workers, which are in the same pool.
    weight
        Weight of each of them, from 1 to 100.
    """

    accelerators: Positive
    weight: Annotated[int, Field(ge=1, le=100)]


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one process on its node, or on each of its nodes.

    Parameters
    ----------
    cpu
        Requested vCPUs.
    memory_mib
        Requested memory, which is also its limit, in MiB.
    shared_memory_mib
        Part of the memory that is mounted as /dev/shm, in MiB.
    ephemeral_storage_mib
        Disk for weights and caches, in MiB.
    efa_interfaces
        Number of EFA interfaces.
    accelerators
        Devices. None for a process that needs none.
    """

    cpu: Positive
    memory_mib: Positive
    shared_memory_mib: NotNegative
    ephemeral_storage_mib: Positive
    efa_interfaces: NotNegative
    accelerators: Accelerators | None = None

    @property
    def devices(self) -> int:
        """Devices that it requests: none if it computes on processors."""
        return self.accelerators.count if self.accelerators and self.accelerators.resource_name else 0


@dataclass(frozen=True, slots=True)
class Rollout:
    """Settings for replacing an old version with a new one.

    Parameters
    ----------
    max_surge
        Processes above `replicas` during a rollout. 0 if the pool has no accelerators to spare.
    max_unavailable
        Processes below `replicas` during a rollout, and in a voluntary disruption of nodes.
    """

    max_surge: NotNegative
    max_unavailable: Positive


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The sizes behind a worker's engine arguments, for readers that do not parse arguments.

    Parameters
    ----------
    engine
        Catalogue key of the engine, such as ``vllm``.
    block_size
        Tokens of a block of the KV cache.
    max_model_len
        Longest prompt and answer together, in tokens.
    max_num_seqs
        Sequences that each data parallel rank of a worker runs at once.
    max_num_batched_tokens
        Tokens that each rank processes in one step.
    kv_blocks
        KV cache blocks that fit each rank, from the memory estimate.
    tensor_parallel_size
        Accelerators that share the attention of each layer.
    host_kv_blocks
        KV cache blocks that a worker keeps in the memory of its node.
    pipeline_parallel_size
        Number of pipeline stages.
    data_parallel_size
        Number of data parallel ranks, each with its own requests and KV cache.
    """

    engine: str
    block_size: int
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_blocks: int
    tensor_parallel_size: int
    host_kv_blocks: int = 0
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A program in the pod of a process. It starts before the process and ends after it.

    Parameters
    ----------
    name
        Name within the process.
    image
        Container image, by digest if one is known.
    arguments
        Command-line arguments, each flag and value a string of its own.
    ports
        Ports that it listens on.
    cpu
        Requested vCPUs.
    memory_mib
        Requested memory, which is also its limit, in MiB.
    health_port
        Name of the port that answers gRPC's health protocol. None for a program without one.
    address
        Address at which it listens, if only the pod itself reaches it. None for every address of the pod.
    """

    name: Name
    image: Image
    arguments: tuple[str, ...]
    ports: Ports
    cpu: Positive
    memory_mib: Positive
    health_port: Name | None = None
    address: Literal["127.0.0.1"] | None = None


@dataclass(frozen=True, slots=True)
class NodeCacheBase:
    """The folder of a node in which workers share weights and compiled kernels, as every target renders it.

    Parameters
    ----------
    host_folder
        The folder on the node.
    compiled
        Name of the folder of the release's compiled kernels.
    compiled_path
        Path at which the worker finds that folder.
    cpu
        vCPUs that the program requests that fills and holds the copy.
    memory_mib
        Memory that it requests, which is also its limit, in MiB.
    fill_seconds
        Longest time for one attempt to fill the copy.
    weights
        Name of the folder of the weights. None for workers that read them from elsewhere.
    weights_path
        Path at which the worker finds that folder, read-only.
    """

    host_folder: Annotated[str, Field(pattern="^/")]
    compiled: NonEmpty
    compiled_path: Annotated[str, Field(pattern="^/")]
    cpu: Positive
    memory_mib: Positive
    fill_seconds: Positive
    weights: NonEmpty | None = None
    weights_path: Annotated[str, Field(pattern="^/")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCache(NodeCacheBase):
    """The node's cache of a worker.

    Parameters
    ----------
    environment
        Source, bound and names, in the variables that ``runtime/weights`` reads.
    """

    environment: Mapping[str, EnvironmentValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBase:
    """The part of a process that every target renders unchanged.

    Fields without a default are in the values of every chart. A field that has its default value is left out.

    Parameters
    ----------
    name
        Name within the deployment, such as ``frontend`` or ``worker``.
    role
        Its role in the deployment.
    image
        Container image, by digest if one is known.
    command
        Program and its fixed arguments.
    arguments
        Engine or router arguments, each flag and value a string of its own. ``$(NAME)`` in one is replaced by
        an environment value, as in Kubernetes.
    ports
        Ports that it listens on.
    probes
        Its health checks.
    resources
        Its resources on its node.
    architecture
        Processor architecture of the image.
    pool
        Pool whose nodes it runs on. None for the system nodes.
    zone
        Availability zone that it prefers: the only one of the workers behind it. None without one.
    tolerations
        Taints of the pool's nodes.
    scheduler
        Scheduler of its pods on Kubernetes. None for that of the cluster.
    capabilities
        Linux capabilities that the container gets, such as ``IPC_LOCK``.
    awaits_weights
        Release of the weights mirror that must be complete before it starts. None if it waits for none.
    replicas
        Number of replicas, or the smallest number of an elastic process.
    nodes
        Number of nodes that each replica spans, with one container on each.
    follower_arguments
        Arguments of the containers on all its nodes except the first. Empty if the target sets them.
    rollout
        Settings for replacing an old version with a new one.
    termination_grace_seconds
        Time for streams to end after SIGTERM, including `pre_stop_seconds`.
    pre_stop_seconds
        Time between the decision to stop and SIGTERM, in which load balancers stop sending requests.
    sidecars
        Programs in the same pod.
    """

    name: Name
    role: Role
    image: Image
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    ports: Ports
    probes: Probes
    resources: Resources
    architecture: Architecture
    pool: NonEmpty | None = None
    zone: NonEmpty | None = None
    tolerations: tuple[Toleration, ...]
    scheduler: NonEmpty | None = None
    capabilities: tuple[Capability, ...] = ()
    awaits_weights: NonEmpty | None = None
    replicas: Positive
    nodes: Positive = 1
    follower_arguments: tuple[str, ...] = ()
    rollout: Rollout
    termination_grace_seconds: Positive
    pre_stop_seconds: NotNegative
    sidecars: tuple[Sidecar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process(ProcessBase):
    """One kind of process of a deployment, and its number of replicas.

    Parameters
    ----------
    environment
        Environment variables by name.
    engine
        The sizes behind a worker's arguments. None for a process without an engine.
    engine_ports
        Ports that its engine opens in addition to `ports` or that are among them, and where they are set.
    neighbours
        Workers that it is placed beside, so that the pool's nodes hold all workers. Empty if it is spread
        instead.
    node_cache
        The folder of the node that it shares with other workers. None without one.
    artefacts
        What its compiler makes and keeps. None if it compiles nothing, or keeps nothing.
    scaling
        How an elastic process grows and shrinks. None for a fixed number of replicas.
    has_python
        Whether its image has Python, in which programs of a target can run.
    """

    environment: Mapping[str, EnvironmentValue]
    engine: EngineSettings | None = None
    engine_ports: tuple[EnginePort, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    node_cache: NodeCache | None = None
    artefacts: CompiledArtefacts | None = None
    scaling: Scaling | None = None
    has_python: bool = True

    @property
    def most(self) -> int:
        """Largest number of replicas."""
        return self.scaling.most if self.scaling else self.replicas

    @property
    def pods(self) -> int:
        """Largest number of pods: one per replica and node."""
        return self.most * self.nodes

    @property
    def is_worker(self) -> bool:
        """Whether it runs an engine."""
        return self.engine is not None
