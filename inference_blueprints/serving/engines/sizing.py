"""How a worker is sized, whatever its engine: memory, lengths, batch sizes and KV cache."""

from __future__ import annotations

import math
from typing import TypeVar

from inference_blueprints.serving.disk import nvme_cache_mib
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.module import EngineModule
from inference_blueprints.serving.engines.worker import Sizing
from inference_blueprints.serving.host_cache import host_cache_mib, kept_tokens
from inference_blueprints.serving.media import with_images
from inference_blueprints.serving.memory import MemoryEstimate, estimate_memory
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.workload import longest_request_tokens, unique_tokens

# A little below vLLM's 0.92: what the memory estimate reserves is an allowance, not a measurement.
_UTILIZATION = 0.9
_FEWEST_SEQUENCES, _MOST_SEQUENCES = 8, 256
# An engine is told its share in thousandths, rounded down; what divides evenly is not to lose one.
_SHARE_STEPS, _DIGITS = 1000, 3

_Number = TypeVar("_Number", int, float)


def engine_of(resolved: ResolvedWorkers) -> EngineModule:
    """Return the module of the workers' engine.

    Parameters
    ----------
    resolved
        The workers.
    """
    return ENGINES[resolved.model.engine.chosen]


def insisted_length(resolved: ResolvedWorkers) -> int | None:
    """Return the longest request that the user asks for by argument; None without.

    Parameters
    ----------
    resolved
        The workers.
    """
    value = resolved.model.engine.arguments.get(engine_of(resolved).WORDS.length)
    return None if value is None else int(value)


def insisted_utilization(resolved: ResolvedWorkers) -> float | None:
    """Return the part of each device that is filled by the share that the user asks for; None without.

    Above 1, the engine would leave less than its activations need.

    Parameters
    ----------
    resolved
        The workers.
    """
    engine = engine_of(resolved)
    share = resolved.model.engine.arguments.get(engine.WORDS.memory_share)
    return None if share is None else engine.utilization(float(share), _estimate(resolved, 1.0))


def worker_memory(resolved: ResolvedWorkers) -> MemoryEstimate:
    """Return how a worker's accelerator memory is spent.

    Parameters
    ----------
    resolved
        The workers.
    """
    insisted = insisted_utilization(resolved)
    return _estimate(resolved, _UTILIZATION if insisted is None else min(1.0, insisted))


def worker_sizing(resolved: ResolvedWorkers) -> Sizing:
    """Return lengths, batch sizes and KV cache of a worker's data parallel rank.

    The longest request is that of the workload with its tail, within the model's context and the KV cache.
    As many sequences run at once as KV cache holds mean requests, rounded down to a power of two: more would
    only preempt each other. What the user sets is taken as it is.

    Parameters
    ----------
    resolved
        The workers.
    """
    engine = engine_of(resolved)
    words, memory = engine.WORDS, worker_memory(resolved)
    block_size = _given(resolved, words.block_size, engine.BLOCK_SIZE)
    kv_tokens = memory.kv_tokens // block_size * block_size
    step_tokens = _step_tokens(resolved)
    sequences = min(kv_tokens / unique_tokens(resolved.model.workload), step_tokens)
    kept = engine.kept_part(resolved)
    share = round(engine.memory_share(memory, resolved.accelerator.memory_bytes) * _SHARE_STEPS, _DIGITS)
    return Sizing(
        block_size=block_size,
        max_model_len=insisted_length(resolved) or min(_wanted_length(resolved), kv_tokens),
        max_num_seqs=_given(resolved, words.sequences, _power_of_two(sequences)),
        max_num_batched_tokens=step_tokens,
        memory_share=_given(resolved, words.memory_share, math.floor(share) / _SHARE_STEPS),
        kv_tokens=kv_tokens,
        host_kv_tokens=kept_tokens(resolved, memory, block_size, kept * host_cache_mib(resolved)),
        nvme_kv_tokens=kept_tokens(resolved, memory, block_size, kept * nvme_cache_mib(resolved)),
    )


def _estimate(resolved: ResolvedWorkers, utilization: float) -> MemoryEstimate:
    """Return the estimate for devices that are filled to a part."""
    kv_cache_type = engine_of(resolved).WORDS.kv_cache_type
    step_tokens = _step_tokens(resolved)
    memory = estimate_memory(
        resolved.shape,
        resolved.accelerator,
        resolved.tensor_parallel_size,
        insisted_length(resolved) or _wanted_length(resolved),
        step_tokens,
        pipeline_parallel_size=resolved.pipeline_parallel_size,
        data_parallel_size=resolved.data_parallel_size,
        gpu_memory_utilization=utilization,
        kv_cache_dtype=str(resolved.model.engine.arguments.get(kv_cache_type, "auto")),
    )
    return with_images(memory, resolved, step_tokens)


def _wanted_length(resolved: ResolvedWorkers) -> int:
    """Return the longest request of the workload that the model's context allows."""
    return min(longest_request_tokens(resolved.model.workload), resolved.shape.context_length)


def _step_tokens(resolved: ResolvedWorkers) -> int:
    """Return the tokens of one step: the user's, else the engine's own choice."""
    engine = engine_of(resolved)
    return _given(resolved, engine.WORDS.step_tokens, engine.step_tokens(resolved.accelerator))


def _given(resolved: ResolvedWorkers, name: str, default: _Number) -> _Number:
    """Return a number that the user gave, or the default."""
    value = resolved.model.engine.arguments.get(name, default)
    return type(default)(value)


def _power_of_two(sequences: float) -> int:
    """Round down to a power of two within the bounds."""
    bounded = min(float(_MOST_SEQUENCES), max(float(_FEWEST_SEQUENCES), sequences))
    return 1 << int(math.log2(bounded))
