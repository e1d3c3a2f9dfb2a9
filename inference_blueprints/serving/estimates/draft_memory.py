"""Device memory of a draft that guesses tokens: its weights, its KV cache, and what it reads."""

from __future__ import annotations

import dataclasses
import math

from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import Model

_BYTES_PER_NUMBER = 2


def layers_kv_bytes_per_token(
    model: Model, draft: Model, kv_cache_type: str, tensor_parallel_size: int
) -> float:
    """Return the KV cache per token of as many layers of the model as the draft has."""
    return model.kv_bytes_per_token(kv_cache_type, tensor_parallel_size) * draft.layers / model.layers


def with_draft(
    memory: MemoryEstimate,
    resolved: ResolvedWorkers,
    step_tokens: int,
    kv_cache_type: str,
    *,
    counts_as_layers: bool,
) -> MemoryEstimate:
    """Subtract the memory of the draft from the KV cache. Workers without one keep their estimate.

    ::

        projection = 2 bytes * values that it reads per token * its hidden size
        weights    = projection + (weights of the draft - projection) / TP
        activation = 2 bytes * tokens of a step * (values that it reads + 2 * its hidden size)
        KV cache   = 2 * head size * KV heads of a device * bytes per value * layers of the draft, per token

    Every device holds the first projection whole (``ReplicatedLinear`` in ``models/llama_eagle3.py`` of vLLM
    0.31.0, ``torch.nn.Linear`` in SGLang's). vLLM splits everything else like the model
    (``draft_tensor_parallel_size`` in ``config/speculative.py``), and SGLang has one tensor parallel group.
    The embedding counts, although engines drop it if it is the model's own: a configuration does not say it.
    SGLang reserves for a layer of the draft what a layer of the model takes
    (``model_executor/pool_configurator.py`` of SGLang 0.5.21).

    memory: The estimate for the model only.
    step_tokens: Most tokens that the engine computes in one step.
    kv_cache_type: The engine's name of the type of the KV cache.
    counts_as_layers: Whether the engine sizes the cache of the draft's layers like that of the model's.
    """
    entry, size = resolved.model.draft, resolved.tensor_parallel_size
    if entry is None or entry.draft is None:
        return memory
    projection = _BYTES_PER_NUMBER * entry.draft.input_size * entry.hidden_size
    weights = math.ceil(projection + (entry.weight_bytes - projection) / size)
    activation = _BYTES_PER_NUMBER * step_tokens * (entry.draft.input_size + 2 * entry.hidden_size)
    cached = entry.kv_bytes_per_token(kv_cache_type, size)
    if counts_as_layers:
        cached = max(cached, layers_kv_bytes_per_token(resolved.shape, entry, kv_cache_type, size))
    kv_cache_bytes = memory.kv_cache_bytes - weights - activation
    kv_bytes_per_token = memory.kv_bytes_per_token + cached
    return dataclasses.replace(
        memory,
        weights_bytes=memory.weights_bytes + weights,
        activation_bytes=memory.activation_bytes + activation,
        kv_cache_bytes=kv_cache_bytes,
        kv_bytes_per_token=kv_bytes_per_token,
        kv_tokens=max(0, int(kv_cache_bytes // kv_bytes_per_token)),
    )
