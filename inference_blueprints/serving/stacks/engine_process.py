"""Common parts of worker processes: image, share of the node, health checks, sizes of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.kv_cache import kv_transfer
from inference_blueprints.serving.estimates.cache_tiers import shared_memory_mib
from inference_blueprints.serving.estimates.disk import worker_disk_mib
from inference_blueprints.serving.estimates.node_copies import (
    SIDECAR_CPU,
    SIDECAR_MEMORY_MIB,
    uses_node_cache,
)
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.nodes.node_share import efa_interfaces, node_share, replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import (
    Accelerators,
    Capability,
    EngineSettings,
    EnvironmentValue,
    HttpProbe,
    Port,
    Probes,
    Resources,
    Role,
    Rollout,
)

# Computes how workers of a new version replace the old ones.


def rollout(resolved: ResolvedWorkers) -> Rollout:
    """Return the rollout settings: new workers start beside old ones only if the pool has spare accelerators.

    At least one worker may always be missing: a disruption budget of 0 blocks every drain, and without surge
    a rollout could not progress. Elastic workers get the settings of their smallest
    number.
    """
    replicas = resolved.workers.minimum
    spare = _replicas_that_fit(resolved)
    surge = max(0, spare - _replicas_in_pool(resolved))
    tenth = max(1, replicas // 10)
    return Rollout(max_surge=min(surge, tenth), max_unavailable=tenth)


def _replicas_that_fit(resolved: ResolvedWorkers) -> int:
    """Return the number of replicas that fit in the pool on the smallest of its instance types."""
    parts = min(replicas_per_node(each, resolved.accelerators_per_node) for each in resolved.types)
    return resolved.pool.nodes.max * parts // resolved.nodes


def _replicas_in_pool(resolved: ResolvedWorkers) -> int:
    """Return all accelerators requested in the pool, in units of these workers, rounded up."""
    accelerators = sum(
        workers.maximum * workers.accelerators
        for model in resolved.blueprint.spec.models
        for deployment in model.deployments
        for workers in deployment.workers.values()
        if workers.pool == resolved.pool.name
    )
    return -(-accelerators // resolved.workers.accelerators)


#: Role of a worker in the plan, by its role in the blueprint.
ROLES: Mapping[WorkerRole, Role] = MappingProxyType(
    {"aggregated": "worker", "prefill": "prefill", "decode": "decode"}
)
#: libfabric with GPUDirect RDMA and without its shared memory path, which cannot reach device memory
#: (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html; NIXL's LIBFABRIC plug-in).
EFA_ENVIRONMENT: Mapping[str, EnvironmentValue] = MappingProxyType(
    {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_ENABLE_SHM_TRANSFER": "0"}
)
#: Makes NCCL log how a worker's nodes communicate: if its EFA plug-in fails to load, NCCL silently uses TCP
#: (https://github.com/aws/aws-ofi-nccl).
COLLECTIVE_ENVIRONMENT: Mapping[str, EnvironmentValue] = MappingProxyType(
    {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
)
#: An Application Load Balancer continues to send requests for some seconds after a target is deregistered.
DEREGISTRATION_SECONDS = 15
#: Resources of a process that only routes requests.
ENTRY_POINT_RESOURCES = Resources(
    cpu=1, memory_mib=2048, shared_memory_mib=0, ephemeral_storage_mib=1024, efa_interfaces=0
)
#: Time for a process to end after its streams have ended.
EXIT_SECONDS = 25

# Compilation, CUDA graph capture and a slow image pull, in addition to loading the weights at a modest speed.
_STARTUP_SECONDS = 900
_WEIGHT_BYTES_PER_SECOND = 100e6
_STARTUP_PERIOD_SECONDS = 10


def engine_image(resolved: ResolvedWorkers) -> str:
    """Return the user's image, or that of the engine's release.

    A digest is added to the tag, because Dynamo's operator needs the tag.

    Of Dynamo's images, only the variant for EFA has libfabric, on which NIXL's plug-in LIBFABRIC and NCCL's
    for EFA depend (``container/templates/aws.Dockerfile`` of ai-dynamo/dynamo; NIXL's wheels leave libfabric
    out).
    """
    own = resolved.model.engine.section.image
    if own is not None and own.name:
        return own.name
    variant = ENGINES[resolved.model.engine.chosen].efa_variant
    if variant and resolved.engine.on_dynamo and efa_interfaces(resolved):
        # This image is not the one that the catalogue's digest identifies.
        return f"{resolved.engine.image}:{resolved.engine.version}{variant}"
    return resolved.engine.address


#: Workers run as a user of Dynamo's images (``_workers.tpl`` of the charts). The engines' own images have no
#: such user, and PyTorch asks for its name while it is imported (ai-dynamo/dynamo#12457); it takes the name
#: from this variable if there is one (``getpass.getuser`` of Python). Its home is not writable either.
#: vLLM-Omni's image is built on vLLM's (``docker/Dockerfile.cuda`` of vllm-project/vllm-omni).
_USER_ENVIRONMENT: Mapping[str, EnvironmentValue] = MappingProxyType({"USER": "engine", "HOME": "/tmp"})  # noqa: S108


def user_environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return what an engine's own image needs to run as another user than its own."""
    needed = not resolved.engine.on_dynamo and ENGINES[resolved.model.engine.chosen].needs_user_name
    return _USER_ENVIRONMENT if needed else {}


def engine_settings(resolved: ResolvedWorkers, sizing: Sizing) -> EngineSettings:
    """Return the sizes behind a worker's arguments.

    sizing: Sizes that the engine's arguments were computed from.
    """
    return EngineSettings(
        engine=resolved.model.engine.chosen,
        block_size=sizing.block_size,
        max_model_len=sizing.max_model_len,
        max_num_seqs=sizing.max_num_seqs,
        max_num_batched_tokens=sizing.max_num_batched_tokens,
        kv_blocks=sizing.kv_blocks,
        tensor_parallel_size=resolved.tensor_parallel_size,
        pipeline_parallel_size=resolved.pipeline_parallel_size,
        data_parallel_size=resolved.data_parallel_size,
        host_kv_blocks=sizing.host_kv_blocks,
    )


def worker_resources(resolved: ResolvedWorkers) -> Resources:
    """Return a worker's share of its node, or of each of its nodes."""
    share = node_share(resolved.types, resolved.accelerators_per_node)
    cpu, memory_mib = share.cpu, share.memory_mib
    if uses_node_cache(resolved):
        cpu, memory_mib = max(1, cpu - SIDECAR_CPU), memory_mib - SIDECAR_MEMORY_MIB
    return Resources(
        cpu=cpu,
        memory_mib=memory_mib,
        shared_memory_mib=shared_memory_mib(resolved, memory_mib),
        ephemeral_storage_mib=worker_disk_mib(resolved),
        accelerators=Accelerators(resolved.accelerator.resource_name, resolved.accelerators_per_node),
        efa_interfaces=efa_interfaces(resolved),
    )


def network_environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return the network environment of workers whose devices communicate between nodes."""
    efa = EFA_ENVIRONMENT if _uses_efa(resolved) else {}
    return {**efa, **(COLLECTIVE_ENVIRONMENT if resolved.nodes > 1 else {})}


def capabilities(resolved: ResolvedWorkers) -> tuple[Capability, ...]:
    """Return the Linux capabilities of a worker: with EFA, it must lock memory."""
    return ("IPC_LOCK",) if _uses_efa(resolved) else ()


def _uses_efa(resolved: ResolvedWorkers) -> bool:
    return kv_transfer(resolved) == "libfabric" or (resolved.nodes > 1 and resolved.pool.efa)


def startup_seconds(resolved: ResolvedWorkers) -> int:
    """Return the longest time until a worker answers, in seconds."""
    size = resolved.shape.weight_bytes + resolved.draft_file_bytes
    compilation = ENGINES[resolved.model.engine.chosen].compile_seconds
    return _STARTUP_SECONDS + compilation + round(size / _WEIGHT_BYTES_PER_SECOND)


def probes(port: Port, *, startup_path: str, live_path: str, startup_seconds: int) -> Probes:
    """Return the health checks of a process on its port.

    A liveness failure cuts streams, so it takes three failures. A readiness failure only takes a process out
    of rotation.

    port: Name of the checked port.
    startup_path, live_path: Path checked until the process has started, and path checked after that.
        ``/health`` is the readiness check.
    startup_seconds: Longest time for starting.
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
        liveness=HttpProbe(port.name, live_path, period_seconds=10, timeout_seconds=5, failure_threshold=3),
    )
