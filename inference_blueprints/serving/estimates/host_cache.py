"""KV cache in the memory of the node, for prompts that no longer fit the accelerators.

Decode workers have none: the cache of their prompts comes from prefill workers. With vLLM alone, the ranks
share one region in ``/dev/shm`` and copy each block of a prompt there when it is computed. The least recently
used block is evicted (vLLM 0.31.0, ``vllm/v1/kv_offload/cpu``). With further tiers, it is LMCache's own
memory.
"""

from __future__ import annotations

from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.units import MIB, MIB_PER_GIB

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
    """Return the KV cache of a token on all devices of a worker, without copies, in bytes."""
    copies = 1 if resolved.shape.attention == "mla" else resolved.tensor_parallel_size
    return memory.kv_bytes_per_token * copies


def shared_memory_mib(resolved: ResolvedWorkers, memory_mib: int) -> int:
    """Return the size of a worker's ``/dev/shm``: the KV cache, plus a quarter of the other memory.

    memory_mib: All memory of the worker.
    """
    cache = host_cache_mib(resolved)
    return cache + min(_LARGEST_OTHER_SHARED_MEMORY_MIB, max(0, memory_mib - cache) // 4)
