"""KV cache in the memory of the node, where prompts are found again that the accelerators had no room for.

Decode workers get none: the cache of their prompts comes from prefill workers. With vLLM alone the ranks
share one region in ``/dev/shm`` and copy each block of a prompt there when it is computed; the least recently
used gives way (vLLM 0.31.0, ``vllm/v1/kv_offload/cpu``). With tiers behind it, it is LMCache's own memory.
"""

from __future__ import annotations

from inference_blueprints.serving.memory import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers

_MIB_PER_GIB = 1024
_BYTES_PER_MIB = 2**20
_LARGEST_OTHER_SHARED_MEMORY_MIB = 16 * _MIB_PER_GIB


def host_cache_mib(resolved: ResolvedWorkers) -> int:
    """Return the memory of the node that a worker keeps KV cache in, in MiB; 0 where it keeps none.

    Parameters
    ----------
    resolved
        The workers.
    """
    section = resolved.model.kv_cache
    if section is None or resolved.role == "decode":
        return 0
    return section.host_memory_gib * _MIB_PER_GIB


def kept_tokens(resolved: ResolvedWorkers, memory: MemoryEstimate, block_size: int, mib: float) -> int:
    """Return the tokens of KV cache that a worker keeps in so much memory or disk, in whole blocks.

    Every device's part of a token is kept; of a latent that all devices hold alike, one copy.

    Parameters
    ----------
    resolved
        The workers.
    memory
        How the memory of each of their accelerators is spent.
    block_size
        Tokens of a block.
    mib
        The place, in MiB.
    """
    tokens = int(mib * _BYTES_PER_MIB // whole_kv_bytes_per_token(resolved, memory))
    return tokens // block_size * block_size


def whole_kv_bytes_per_token(resolved: ResolvedWorkers, memory: MemoryEstimate) -> float:
    """Return what a token takes of all devices of a worker, without copies.

    Parameters
    ----------
    resolved
        The workers.
    memory
        How the memory of each of their accelerators is spent.
    """
    copies = 1 if resolved.shape.attention == "mla" else resolved.tensor_parallel_size
    return memory.kv_bytes_per_token * copies


def shared_memory_mib(resolved: ResolvedWorkers, memory_mib: int) -> int:
    """Return the size of a worker's ``/dev/shm``: room for KV cache, and a quarter of the other memory.

    Parameters
    ----------
    resolved
        The workers.
    memory_mib
        All memory of the worker.
    """
    cache = host_cache_mib(resolved)
    return cache + min(_LARGEST_OTHER_SHARED_MEMORY_MIB, max(0, memory_mib - cache) // 4)
