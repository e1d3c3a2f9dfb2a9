"""NVIDIA Dynamo: a frontend with its router on the system nodes, engine workers on the pool's.

Commands, flags and environment are those of the ai-dynamo release that the catalogue pins; ports and health
paths are also what its Kubernetes operator expects (``deploy/operator/internal/consts`` of ai-dynamo/dynamo).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.catalog.placement import SYSTEM_ARCHITECTURE
from inference_blueprints.serving.arguments import words
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.kv_transfer import kv_transfer
from inference_blueprints.serving.node_share import efa_interfaces, node_share, tolerations, worker_disk_mib
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.rollout import rollout
from inference_blueprints.serving.types import (
    Accelerators,
    EngineSettings,
    EnvironmentValue,
    HttpProbe,
    OwnAddress,
    Port,
    Probes,
    Process,
    Resources,
    Role,
    Rollout,
)
from inference_blueprints.serving.weights import mirror_release
from inference_blueprints.serving.workload import longest_stream_seconds
from inference_blueprints.spec.types import ArgumentValue

#: Engines that Dynamo runs, by the blueprint's key: its own word for each, and the name of its module.
FRAMEWORKS: Mapping[str, str] = MappingProxyType({"vllm": "vllm"})

_ROLES: Mapping[WorkerRole, Role] = MappingProxyType(
    {"aggregated": "worker", "prefill": "prefill", "decode": "decode"}
)
# libfabric with GPUDirect RDMA and without its shared memory path, which cannot reach device memory
# (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html; NIXL's LIBFABRIC plug-in).
_EFA_ENVIRONMENT: Mapping[str, EnvironmentValue] = MappingProxyType(
    {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_ENABLE_SHM_TRANSFER": "0"}
)
_FRONTEND_REPOSITORY = "nvcr.io/nvidia/ai-dynamo/dynamo-frontend"
_FRONTEND_REPLICAS = 2
_HTTP = Port("http", 8000)
_SYSTEM = Port("system", 9090)
_ROUTER_MODES: Mapping[str, Mapping[str, ArgumentValue]] = MappingProxyType(
    {
        # Two frontends each see half of the requests; they tell each other which workers are busy.
        "kvAware": {"router-mode": "kv", "router-replica-sync": True},
        "roundRobin": {"router-mode": "round-robin"},
    }
)
# Times that a stream may move to another worker when its own dies.
_MIGRATION_LIMIT = 3
# An Application Load Balancer keeps sending for some seconds after a target is deregistered.
_DEREGISTRATION_SECONDS = 15
# Dynamo's default between unregistering a worker and stopping its endpoints; then the process itself ends.
_UNREGISTERED_SECONDS = 5
_EXIT_SECONDS = 25
# Compiling, capturing CUDA graphs and pulling on a bad day, beside fetching the weights at a modest speed.
_STARTUP_SECONDS = 900
_WEIGHT_BYTES_PER_SECOND = 100e6
_STARTUP_PERIOD_SECONDS = 10
_LARGEST_SHARED_MEMORY_MIB = 16 * 1024


def processes(roles: tuple[ResolvedWorkers, ...]) -> tuple[Process, ...]:
    """Return the frontend and the workers of a deployment.

    Parameters
    ----------
    roles
        Its workers, aggregated or prefill and decode.
    """
    return (_frontend(roles[0]), *map(_workers, roles))


def _frontend(resolved: ResolvedWorkers) -> Process:
    """Describe the process that answers the OpenAI API and routes."""
    stream = longest_stream_seconds(resolved.model.workload, resolved.model.objectives)
    routing = _ROUTER_MODES[resolved.model.routing.chosen]
    arguments = {"http-port": _HTTP.number, **routing, "migration-limit": _MIGRATION_LIMIT}
    environment: dict[str, EnvironmentValue] = {
        "DYN_TCP_RPC_HOST": OwnAddress(),
        "DYN_TCP_RESPONSE_STREAM_HOST": OwnAddress(),
        "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(stream),
    }
    return Process(
        name="frontend",
        role="frontend",
        image=f"{_FRONTEND_REPOSITORY}:{resolved.engine.version}",
        command=("python3", "-m", "dynamo.frontend"),
        arguments=words(arguments),
        environment=environment,
        ports=(_HTTP,),
        probes=_probes(_HTTP, startup_path="/live", startup_seconds=300),
        resources=Resources(cpu=1, memory_mib=2048, ephemeral_storage_mib=1024),
        architecture=SYSTEM_ARCHITECTURE,
        pool=None,
        replicas=_FRONTEND_REPLICAS,
        rollout=Rollout(max_surge=1, max_unavailable=1),
        pre_stop_seconds=_DEREGISTRATION_SECONDS,
        termination_grace_seconds=_DEREGISTRATION_SECONDS + stream + _EXIT_SECONDS,
    )


def _workers(resolved: ResolvedWorkers) -> Process:
    """Describe the process that runs the engine in one role."""
    key = resolved.model.engine.chosen
    engine = ENGINES[key]
    sizing = engine.size(resolved)
    stream = longest_stream_seconds(resolved.model.workload, resolved.model.objectives)
    environment: dict[str, EnvironmentValue] = {
        "DYN_SYSTEM_PORT": str(_SYSTEM.number),
        "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]',
        "DYN_TCP_RPC_HOST": OwnAddress(),
        "DYN_TCP_RESPONSE_STREAM_HOST": OwnAddress(),
        "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS": str(_UNREGISTERED_SECONDS),
        "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": str(stream),
        **engine.environment(resolved),
        **(_EFA_ENVIRONMENT if kv_transfer(resolved) == "libfabric" else {}),
    }
    role = _ROLES[resolved.role]
    startup = _STARTUP_SECONDS + round(resolved.shape.weight_bytes / _WEIGHT_BYTES_PER_SECOND)
    return Process(
        name=role,
        role=role,
        image=_engine_image(resolved),
        command=("python3", "-m", f"dynamo.{FRAMEWORKS[key]}"),
        arguments=words(engine.arguments(resolved, sizing)),
        environment=environment,
        ports=(_SYSTEM,),
        probes=_probes(_SYSTEM, startup_path="/health", startup_seconds=startup),
        resources=_worker_resources(resolved),
        architecture=resolved.instance_types[0].architecture,
        pool=resolved.pool.name,
        replicas=resolved.workers.replicas,
        rollout=rollout(resolved),
        termination_grace_seconds=_UNREGISTERED_SECONDS + stream + _EXIT_SECONDS,
        engine=_engine_settings(resolved, sizing, key),
        capabilities=("IPC_LOCK",) if kv_transfer(resolved) == "libfabric" else (),
        awaits_weights=mirror_release(resolved.model),
        tolerations=tolerations(resolved),
    )


def _engine_image(resolved: ResolvedWorkers) -> str:
    """Return the engine's image; Dynamo's operator reads the release from the tag, so a digest keeps it."""
    tagged = f"{resolved.engine.image}:{resolved.engine.version}"
    return f"{tagged}@{resolved.engine.digest}" if resolved.engine.digest else tagged


def _engine_settings(resolved: ResolvedWorkers, sizing: Sizing, key: str) -> EngineSettings:
    """Name the figures behind the worker's arguments."""
    return EngineSettings(
        engine=key,
        block_size=sizing.block_size,
        max_model_len=sizing.max_model_len,
        max_num_seqs=sizing.max_num_seqs,
        max_num_batched_tokens=sizing.max_num_batched_tokens,
        kv_blocks=sizing.kv_blocks,
        tensor_parallel_size=resolved.tensor_parallel_size,
    )


def _worker_resources(resolved: ResolvedWorkers) -> Resources:
    """Return the worker's share of its node."""
    share = node_share(resolved.instance_types, resolved.tensor_parallel_size)
    return Resources(
        cpu=share.cpu,
        memory_mib=share.memory_mib,
        shared_memory_mib=min(_LARGEST_SHARED_MEMORY_MIB, share.memory_mib // 4),
        ephemeral_storage_mib=worker_disk_mib(resolved),
        accelerators=Accelerators(resolved.accelerator.resource_name, resolved.tensor_parallel_size),
        efa_interfaces=efa_interfaces(resolved),
    )


def _probes(port: Port, *, startup_path: str, startup_seconds: int) -> Probes:
    """Return the health checks of a process on its port.

    A liveness failure kills streams, so it takes three; readiness alone takes a process out of rotation.
    """
    return Probes(
        startup=HttpProbe(
            port=port.name,
            path=startup_path,
            period_seconds=_STARTUP_PERIOD_SECONDS,
            timeout_seconds=5,
            failure_threshold=-(-startup_seconds // _STARTUP_PERIOD_SECONDS),
        ),
        readiness=HttpProbe(port.name, "/health", period_seconds=5, timeout_seconds=4, failure_threshold=3),
        liveness=HttpProbe(port.name, "/live", period_seconds=10, timeout_seconds=5, failure_threshold=3),
    )
