"""What every stack gives its workers: image, share of the node, health checks, figures of their engine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.disk import worker_disk_mib
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.host_cache import shared_memory_mib
from inference_blueprints.serving.kv_transfer import kv_transfer
from inference_blueprints.serving.node_share import efa_interfaces, node_share
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import (
    Accelerators,
    EngineSettings,
    EnvironmentValue,
    HttpProbe,
    Port,
    Probes,
    Resources,
    Role,
)

#: What a worker does, in the plan's words.
ROLES: Mapping[WorkerRole, Role] = MappingProxyType(
    {"aggregated": "worker", "prefill": "prefill", "decode": "decode"}
)
#: libfabric with GPUDirect RDMA and without its shared memory path, which cannot reach device memory
#: (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html; NIXL's LIBFABRIC plug-in).
EFA_ENVIRONMENT: Mapping[str, EnvironmentValue] = MappingProxyType(
    {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_ENABLE_SHM_TRANSFER": "0"}
)
#: What has NCCL say in the log how a worker's nodes talk: where its plug-in for EFA fails to load it takes
#: TCP without a word (https://github.com/aws/aws-ofi-nccl).
COLLECTIVE_ENVIRONMENT: Mapping[str, EnvironmentValue] = MappingProxyType(
    {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
)
#: An Application Load Balancer keeps sending for some seconds after a target is deregistered.
DEREGISTRATION_SECONDS = 15
#: What a process may take to end once its streams have.
EXIT_SECONDS = 25

# Documented beside several releases since 1.2, as experimental ("Release Artifacts", docs.nvidia.com/dynamo);
# not seen for every patch release.
_EFA_VARIANT = "-efa"
# Compiling, capturing CUDA graphs and pulling on a bad day, beside fetching the weights at a modest speed.
_STARTUP_SECONDS = 900
_WEIGHT_BYTES_PER_SECOND = 100e6
_STARTUP_PERIOD_SECONDS = 10


def engine_image(resolved: ResolvedWorkers) -> str:
    """Return the engine's image; Dynamo's operator reads the release from the tag, so a digest keeps it.

    Only its variant for EFA has libfabric, on which NIXL's plug-in LIBFABRIC and NCCL's for EFA depend
    (``container/templates/aws.Dockerfile`` of ai-dynamo/dynamo; NIXL's wheels leave libfabric out).

    Parameters
    ----------
    resolved
        The workers.
    """
    if efa_interfaces(resolved):
        # Another image than the one that the catalogue's digest names.
        return f"{resolved.engine.image}:{resolved.engine.version}{_EFA_VARIANT}"
    tagged = f"{resolved.engine.image}:{resolved.engine.version}"
    return f"{tagged}@{resolved.engine.digest}" if resolved.engine.digest else tagged


def engine_settings(resolved: ResolvedWorkers, sizing: Sizing) -> EngineSettings:
    """Name the figures behind a worker's arguments.

    Parameters
    ----------
    resolved
        The workers.
    sizing
        What the engine made of them.
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
    """Return a worker's share of its node, or of each of its nodes.

    Parameters
    ----------
    resolved
        The workers.
    """
    share = node_share(resolved.instance_types, resolved.accelerators_per_node)
    return Resources(
        cpu=share.cpu,
        memory_mib=share.memory_mib,
        shared_memory_mib=shared_memory_mib(resolved, share.memory_mib),
        ephemeral_storage_mib=worker_disk_mib(resolved),
        accelerators=Accelerators(resolved.accelerator.resource_name, resolved.accelerators_per_node),
        efa_interfaces=efa_interfaces(resolved),
    )


def network_environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return what workers whose devices talk over the network are told of it.

    Parameters
    ----------
    resolved
        The workers.
    """
    efa = EFA_ENVIRONMENT if _uses_efa(resolved) else {}
    return {**efa, **(COLLECTIVE_ENVIRONMENT if resolved.nodes > 1 else {})}


def capabilities(resolved: ResolvedWorkers) -> tuple[str, ...]:
    """Return the Linux capabilities of a worker: memory that EFA reads and writes is locked.

    Parameters
    ----------
    resolved
        The workers.
    """
    return ("IPC_LOCK",) if _uses_efa(resolved) else ()


def _uses_efa(resolved: ResolvedWorkers) -> bool:
    return kv_transfer(resolved) == "libfabric" or (resolved.nodes > 1 and resolved.pool.efa)


def startup_seconds(resolved: ResolvedWorkers) -> int:
    """Return how long a worker may take until it answers.

    Parameters
    ----------
    resolved
        The workers.
    """
    return _STARTUP_SECONDS + round(resolved.shape.weight_bytes / _WEIGHT_BYTES_PER_SECOND)


def probes(port: Port, *, startup_path: str, live_path: str, startup_seconds: int) -> Probes:
    """Return the health checks of a process on its port.

    A liveness failure kills streams, so it takes three; readiness alone takes a process out of rotation.

    Parameters
    ----------
    port
        Where it is asked.
    startup_path, live_path
        What it is asked until it has started, and from then on; ``/health`` says whether it is ready.
    startup_seconds
        How long starting may take.
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
