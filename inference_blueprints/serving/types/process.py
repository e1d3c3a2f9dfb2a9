"""One process of the serving plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from inference_blueprints.serving.types.values import EnvironmentValue

Architecture = Literal["amd64", "arm64"]
#: A ``worker`` does prefill and decode.
Role = Literal["frontend", "worker", "prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port on which a process listens.

    Parameters
    ----------
    name
        Name of the port, unique in its process.
    number
        Port number in the container; a local target chooses free ones instead.
    """

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """A health check over HTTP.

    Parameters
    ----------
    port
        Name of the port.
    path
        Path that answers 200 when healthy.
    period_seconds, timeout_seconds, failure_threshold
        How often it is asked, how long an answer may take, and how many failures in a row count.
    """

    port: str
    path: str
    period_seconds: int
    timeout_seconds: int
    failure_threshold: int


@dataclass(frozen=True, slots=True)
class Probes:
    """The health checks of a process; startup bounds how long loading the weights may take."""

    startup: HttpProbe
    readiness: HttpProbe
    liveness: HttpProbe


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Accelerators of one process.

    Parameters
    ----------
    resource_name
        Kubernetes device resource, such as ``nvidia.com/gpu``.
    count
        Devices a process has on each of its nodes.
    """

    resource_name: str
    count: int


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint of nodes that a process may run on in spite of it; the taint's own words.

    Parameters
    ----------
    key, value, effect
        Of the taint.
    """

    key: str
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Workers beside which another likes to stand, more than on a node with fewer of them.

    Parameters
    ----------
    accelerators
        Devices of each such worker, which is of the same pool.
    weight
        What each counts, from 1 to 100.
    """

    accelerators: int
    weight: int


@dataclass(frozen=True, slots=True)
class Resources:
    """What one process needs of its node, or of each of its nodes.

    Parameters
    ----------
    cpu
        vCPUs requested.
    memory_mib
        Memory requested and its limit, in MiB.
    shared_memory_mib
        Part of the memory that is mounted as /dev/shm, in MiB.
    ephemeral_storage_mib
        Disk for weights and caches, in MiB.
    accelerators
        Devices, or None for a process that needs none.
    efa_interfaces
        EFA interfaces, 0 where none are used.
    """

    cpu: int
    memory_mib: int
    shared_memory_mib: int = 0
    ephemeral_storage_mib: int = 0
    accelerators: Accelerators | None = None
    efa_interfaces: int = 0


@dataclass(frozen=True, slots=True)
class Rollout:
    """How a new version replaces the old one.

    Parameters
    ----------
    max_surge
        Processes above `replicas` during a rollout; 0 where the pool has no accelerators to spare.
    max_unavailable
        Processes below `replicas` during a rollout, and in a voluntary disruption of nodes.
    """

    max_surge: int
    max_unavailable: int


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The figures behind a worker's engine arguments, for readers that do not parse arguments.

    Parameters
    ----------
    engine
        Catalogue key of the engine, such as ``vllm``.
    block_size
        KV cache block in tokens.
    max_model_len
        Prompt and answer together at the most, in tokens.
    max_num_seqs
        Sequences that each of a worker's data parallel ranks runs at once.
    max_num_batched_tokens
        Tokens that each processes in one step.
    kv_blocks
        KV cache blocks that fit each, from the memory arithmetic.
    tensor_parallel_size
        Accelerators that share each layer's attention.
    host_kv_blocks
        KV cache blocks that a worker keeps in the memory of its node.
    pipeline_parallel_size
        Stages of layers.
    data_parallel_size
        Ranks of a worker, each with requests and a KV cache of its own.
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
    """A program beside a process, in its pod: it starts before it and ends after it.

    Parameters
    ----------
    name
        Name within the process.
    image
        Container image, by digest where one is known.
    arguments
        What its own program is given, each flag and value a string of its own.
    ports
        Ports it listens on.
    cpu
        vCPUs requested.
    memory_mib
        Memory requested and its limit, in MiB.
    health_port
        Name of the port that answers gRPC's health protocol; None for a program without one.
    """

    name: str
    image: str
    arguments: tuple[str, ...]
    ports: tuple[Port, ...]
    cpu: int
    memory_mib: int
    health_port: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """One kind of process and how many of it run.

    Parameters
    ----------
    name
        Name within the deployment, such as ``frontend`` or ``worker``.
    role
        What it does.
    image
        Container image, by digest where one is known.
    command
        Program and its fixed arguments.
    arguments
        Engine or router arguments, each flag and value a string of its own. ``$(NAME)`` in one stands for an
        environment value, as it does for Kubernetes.
    environment
        Environment variables by name.
    ports
        Ports it listens on.
    probes
        Its health checks.
    resources
        What it needs of its node.
    architecture
        Processor architecture of the image.
    pool
        Pool whose nodes it runs on; None for the system nodes.
    replicas
        How many run.
    rollout
        How a new version replaces the old one.
    termination_grace_seconds
        Time for streams to end after SIGTERM.
    engine
        The figures behind a worker's arguments; None for a process without an engine.
    capabilities
        Linux capabilities that the container gets, such as ``IPC_LOCK``.
    pre_stop_seconds
        Time between the decision to stop and SIGTERM, in which load balancers stop sending; part of
        `termination_grace_seconds`.
    tolerations
        Taints of the pool's nodes.
    awaits_weights
        Release of the mirror whose copy it starts after; None where it waits for none.
    neighbours
        Workers beside which it stands, so that the pool's nodes hold all; none where it is spread instead.
    sidecars
        Programs beside it.
    nodes
        Nodes over which each replica lies, with one container on each.
    follower_arguments
        Arguments of the containers on all its nodes but the first; empty where the target makes them.
    """

    name: str
    role: Role
    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, EnvironmentValue]
    ports: tuple[Port, ...]
    probes: Probes
    resources: Resources
    architecture: Architecture
    pool: str | None
    replicas: int
    rollout: Rollout
    termination_grace_seconds: int
    engine: EngineSettings | None = None
    capabilities: tuple[str, ...] = ()
    pre_stop_seconds: int = 0
    tolerations: tuple[Toleration, ...] = ()
    awaits_weights: str | None = None
    neighbours: tuple[Neighbour, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    nodes: int = 1
    follower_arguments: tuple[str, ...] = ()

    @property
    def pods(self) -> int:
        """Containers of it on nodes: one a replica, or as many as each replica has nodes."""
        return self.replicas * self.nodes

    @property
    def is_worker(self) -> bool:
        """Whether it runs an engine."""
        return self.engine is not None
