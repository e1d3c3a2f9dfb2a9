"""Sizes of a worker, for any engine: memory, lengths, batch sizes and KV cache."""

from __future__ import annotations

import math
from typing import TypeVar

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.serving_engine import ServingEngine
from inference_blueprints.serving.estimates.cache_tiers import host_cache_mib, kept_tokens
from inference_blueprints.serving.estimates.disk import nvme_cache_mib
from inference_blueprints.serving.estimates.image_inputs import with_images
from inference_blueprints.serving.estimates.memory_estimate import (
    MemoryEstimate,
    estimate_memory,
    image_memory,
    with_draft,
)
from inference_blueprints.serving.estimates.request_estimates import held_tokens, unique_tokens
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, computed_once
from inference_catalog import Model
from inference_catalog.pipeline_stages import stages_of

# Slightly below vLLM's 0.92, because the reserve in the memory estimate is an allowance and not a
# measurement.
_UTILIZATION = 0.9
_FEWEST_SEQUENCES, _MAX_SEQUENCES = 8, 256
# The engine gets its memory share in thousandths, rounded down. This must not reduce an exact share.
_SHARE_STEPS, _DIGITS = 1000, 3

_Number = TypeVar("_Number", int, float)


def engine_of(resolved: ResolvedWorkers) -> ServingEngine:
    """Return the workers' engine."""
    return ENGINES[resolved.model.engine.chosen]


def user_set_length(resolved: ResolvedWorkers) -> int | None:
    """Return the longest request that the user sets by argument; None if not set."""
    value = resolved.model.engine.arguments.get(engine_of(resolved).argument_names.length)
    return None if value is None else int(value)


def user_set_utilization(resolved: ResolvedWorkers) -> float | None:
    """Return the filled part of each device for the memory share that the user sets; None if not set.

    Above 1, the engine would leave less memory than its activations need.
    """
    engine = engine_of(resolved)
    share = resolved.model.engine.arguments.get(engine.argument_names.memory_share)
    return None if share is None else engine.utilization(float(share), _estimate(resolved, 1.0))


def given_stage_sizes(resolved: ResolvedWorkers) -> tuple[int, ...] | None:
    """Return the layers of each stage that the user sets by variable; None if not set, or not for them."""
    text = resolved.model.engine.section.env.get(engine_of(resolved).partition_variable, "")
    sizes = tuple(int(each) for each in text.split(",") if each.strip().isascii() and each.strip().isdigit())
    fits = (len(sizes), sum(sizes)) == (resolved.pipeline_parallel_size, resolved.shape.layers)
    return sizes if fits and len(sizes) == text.count(",") + 1 else None


@computed_once
def worker_memory(resolved: ResolvedWorkers) -> MemoryEstimate:
    """Return the memory estimate of a worker's accelerator."""
    if resolved.shape.pipeline:
        return image_memory(resolved, resolved.shape.pipeline)
    user_set = user_set_utilization(resolved)
    return _estimate(resolved, _UTILIZATION if user_set is None else min(1.0, user_set))


@computed_once
def worker_sizing(resolved: ResolvedWorkers) -> Sizing:
    """Return lengths, batch sizes and KV cache of a worker's data parallel rank.

    The longest request is that of the workload with its tail, limited by the model's context and the KV
    cache. The number of concurrent sequences is the number of requests that fit the KV cache for 99 % of the
    time, rounded down to a power of two: more would only preempt each other. Where each sequence has its own
    part of the cache, it is the number of longest requests. The user's own settings are used unchanged.
    """
    engine = engine_of(resolved)
    names, memory = engine.argument_names, worker_memory(resolved)
    if resolved.shape.pipeline:
        return _of_images(memory)
    block_size = _given(resolved, names.block_size, engine.planned_block(resolved))
    kv_tokens = memory.kv_tokens // block_size * block_size
    step_tokens = _step_tokens(resolved)
    held = held_tokens(
        [way.means for way in resolved.traffic.ways] or [resolved.traffic.means], resolved.model.objectives
    )
    sequences = min(held.fitting(kv_tokens), step_tokens)
    kept = engine.usable_cache_share(resolved)
    length = user_set_length(resolved) or _planned_length(memory, _wanted_length(resolved), block_size)
    places = engine.places(resolved, kv_tokens, length)
    share = round(engine.memory_share(memory, resolved.accelerator.core.memory_bytes) * _SHARE_STEPS, _DIGITS)
    return Sizing(
        block_size=block_size,
        max_model_len=length,
        max_num_seqs=_given(resolved, names.sequences, _power_of_two(sequences, places)),
        max_num_batched_tokens=step_tokens,
        memory_share=_given(resolved, names.memory_share, math.floor(share) / _SHARE_STEPS),
        kv_tokens=kv_tokens,
        host_kv_tokens=kept_tokens(resolved, memory, block_size, kept * host_cache_mib(resolved)),
        nvme_kv_tokens=kept_tokens(resolved, memory, block_size, kept * nvme_cache_mib(resolved)),
    )


def _of_images(memory: MemoryEstimate) -> Sizing:
    """Return the sizes of a worker that makes images: one request at a time, and no KV cache."""
    return Sizing(
        block_size=1,
        max_model_len=memory.max_model_len,
        max_num_seqs=1,
        max_num_batched_tokens=memory.max_model_len,
        memory_share=1.0,
        kv_tokens=0,
    )


def _estimate(resolved: ResolvedWorkers, utilization: float) -> MemoryEstimate:
    """Return the estimate for devices that are filled to a given part: that of the stage with least room.

    Engines give every stage as many blocks or tokens as the one that has room for the fewest
    (``get_kv_cache_configs`` in ``v1/core/kv_cache_utils.py`` of vLLM 0.31.0).
    """
    engine = engine_of(resolved)
    count, given = resolved.pipeline_parallel_size, given_stage_sizes(resolved)
    stages = stages_of(engine.held_model(resolved), count, engine.cache_rule, given)
    estimates = [
        _of_stage(resolved, stage, utilization, first=not number) for number, stage in enumerate(stages)
    ]
    return min(estimates, key=lambda each: each.longest_requests)


def _of_stage(resolved: ResolvedWorkers, stage: Model, utilization: float, *, first: bool) -> MemoryEstimate:
    engine = engine_of(resolved)
    step_tokens = _step_tokens(resolved)
    memory = estimate_memory(
        stage,
        resolved.accelerator.core,
        resolved.tensor_parallel_size,
        user_set_length(resolved) or _wanted_length(resolved),
        step_tokens,
        pipeline_parallel_size=resolved.pipeline_parallel_size,
        data_parallel_size=resolved.data_parallel_size,
        gpu_memory_utilization=utilization,
        use=engine.used_cache(resolved, step_tokens),
        mean_tokens=unique_tokens(resolved.traffic.means),
    )
    guessing = with_draft(engine.limited_cache(memory, resolved), resolved, step_tokens)
    return with_images(guessing, resolved, stage, step_tokens if first else 0)


def _planned_length(memory: MemoryEstimate, wanted: int, block_size: int) -> int:
    """Return the wanted length, or as many whole blocks as one request may take of the cache."""
    fitting = memory.longest_request(wanted)
    return fitting if fitting == wanted else fitting // block_size * block_size


def _wanted_length(resolved: ResolvedWorkers) -> int:
    """Return the longest request of the workload that the model's context allows."""
    return min(resolved.traffic.longest_request_tokens, resolved.shape.context_length)


def _step_tokens(resolved: ResolvedWorkers) -> int:
    """Return the tokens of one step: the user's setting, else the engine's default."""
    engine = engine_of(resolved)
    return _given(resolved, engine.argument_names.step_tokens, engine.step_tokens(resolved.accelerator))


def _given(resolved: ResolvedWorkers, name: str, default: _Number) -> _Number:
    """Return a number that the user set, or the default."""
    value = resolved.model.engine.arguments.get(name, default)
    return type(default)(value)


def _power_of_two(sequences: float, places: int | None) -> int:
    """Round down to a power of two within limits. With places, it is the number that they allow."""
    minimum, wanted = (_FEWEST_SEQUENCES, sequences) if places is None else (1, places)
    bounded = min(float(_MAX_SEQUENCES), max(float(minimum), wanted))
    return 1 << int(math.log2(bounded))
