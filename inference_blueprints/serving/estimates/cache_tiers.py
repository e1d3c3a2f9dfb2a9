"""KV cache outside the accelerators: in the memory of the node, and in a bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.request_estimates import worker_requests_per_second
from inference_blueprints.serving.nodes.node_share import replicas_per_node
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue, KvCacheBucket, SharedKvCachePlan
from inference_blueprints.spec import types as spec
from inference_contracts.errors import Finding
from inference_contracts.units import MIB, MIB_PER_GIB

# KV cache in the memory of the node, for prompts that no longer fit the accelerators.
#
# Decode workers have none: the cache of their prompts comes from prefill workers. With vLLM alone, the ranks
# share one region in ``/dev/shm`` and copy each block of a prompt there when it is computed. The least
# recently used block is evicted (vLLM 0.31.0, ``vllm/v1/kv_offload/cpu``). With further tiers, it is
# LMCache's own memory.

_LARGEST_OTHER_SHARED_MEMORY_MIB = 16 * MIB_PER_GIB


def host_cache_mib(resolved: ResolvedWorkers) -> int:
    """Return the size of a worker's KV cache in the memory of its node, in MiB; 0 without one."""
    section = resolved.model.kv_cache
    if section is None or resolved.role == "decode":
        return 0
    return section.host_memory_gib * MIB_PER_GIB


def kept_tokens(resolved: ResolvedWorkers, memory: MemoryEstimate, block_size: int, mib: float) -> int:
    """Return the tokens of KV cache that fit this much memory or disk, in whole blocks.

    Every device's part of a token is stored. A latent vector that all devices hold is stored once.

    memory: Memory estimate of each of their accelerators.
    block_size: Tokens per block.
    mib: Size of the memory or disk, in MiB.
    """
    tokens = int(mib * MIB // whole_kv_bytes_per_token(resolved, memory))
    return tokens // block_size * block_size


def whole_kv_bytes_per_token(resolved: ResolvedWorkers, memory: MemoryEstimate) -> float:
    """Return the KV cache of a token on all devices of a worker, without copies, in bytes.

    Latent attention is stored whole on every device of a stage. All stages together hold all layers.
    """
    copies = 1 if resolved.shape.attention == "mla" else resolved.tensor_parallel_size
    whole = memory.demand and replace(memory.demand, model=resolved.device_shape)
    return whole.bytes_per_token * copies if whole else 0.0


def shared_memory_mib(resolved: ResolvedWorkers, memory_mib: int) -> int:
    """Return the size of a worker's ``/dev/shm``: the KV cache, plus a quarter of the other memory.

    memory_mib: All memory of the worker.
    """
    cache = host_cache_mib(resolved)
    return cache + min(_LARGEST_OTHER_SHARED_MEMORY_MIB, max(0, memory_mib - cache) // 4)


# KV cache in a bucket shared by all workers of a model: each finds blocks that another has computed.
#
# LMCache 0.5.6 names an object by model, rank and prefix, at the root of the bucket, and not by the revision
# of the weights (``lmcache/v1/distributed/l2_adapters/s3_l2_adapter.py``). So each model has its own bucket,
# and every change that makes its blocks different gives it another bucket.

_BUCKET = "KV_CACHE_BUCKET"
#: Placeholder of the bucket's name. Kubernetes replaces it in arguments.
BUCKET_REFERENCE = f"$({_BUCKET})"
_BYTES_PER_MEGABIT = 125_000
# The same network card loads weights and sends answers. S3 is reached over IP, which only one card supports.
_NETWORK_PART = 0.5


def shared_cache(resolved: ResolvedWorkers) -> spec.S3KvCache | None:
    """Return the shared bucket of these workers; None without one."""
    section = resolved.model.kv_cache
    return section.shared.s3 if section and section.shared and resolved.role != "decode" else None


def shared_cache_environment(resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
    """Return the environment variables with a worker's bucket."""
    return {_BUCKET: KvCacheBucket()} if shared_cache(resolved) else {}


def shared_cache_plan(model: spec.Model, engine_version: str) -> SharedKvCachePlan | None:
    """Return the bucket that a model needs; None if it needs none.

    engine_version: Release of the model's engine.
    """
    import hashlib

    bucket = model.kv_cache.shared.s3 if model.kv_cache and model.kv_cache.shared else None
    if bucket is None:
        return None
    numbers = [engine_version, model.weights.model_dump(mode="json"), model.engine.model_dump(mode="json")]
    digest = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()
    return SharedKvCachePlan(content=digest[:8], expire_days=bucket.expire_days)


def shared_cache_findings(resolved: ResolvedWorkers, kv_bytes_per_token: float) -> Iterator[Finding]:
    """Check that blocks in the bucket belong to the model's weights, and that the network is fast enough.

    kv_bytes_per_token: KV cache of a token on all devices of a worker together, in bytes.
    Yields: An error if workers with weights of another commit could read the blocks; a warning if the network
        is too slow.
    """
    if not shared_cache(resolved):
        return
    path = (*resolved.model_path, "kvCache", "shared")
    weights = resolved.model.weights
    if weights.hugging_face and not weights.revision:
        message = (
            "blocks are stored under the model's name for days, so its next commit would read the blocks of "
            "this one; set weights.revision"
        )
        yield Finding(path, message)
    workload = resolved.traffic.means
    new_tokens = workload.input_tokens * (1 - workload.shared_prefix_ratio)
    written = new_tokens * worker_requests_per_second(resolved, resolved.workers.maximum) * kv_bytes_per_token
    room = _NETWORK_PART * _network_bytes_per_second(resolved)
    if written > room:
        message = (
            f"each worker of '{resolved.label}' would write {written / 1e9:.1f} GB/s at the peak "
            f"({kv_bytes_per_token / 1000:,.0f} kB per unshared token), but half of its share of the "
            f"network is {room / 1e9:.1f} GB/s; leave shared out, or use more replicas"
        )
        yield Finding(path, message, "warning")


def _network_bytes_per_second(resolved: ResolvedWorkers) -> float:
    """Return a worker's bytes per second on the network card that carries IP, on the slowest type."""
    return min(
        each.network_bandwidth_mbps
        / max(1, each.network_cards)
        * _BYTES_PER_MEGABIT
        / max(1, replicas_per_node(each, resolved.tensor_parallel_size))
        for each in resolved.types
    )
