"""Estimates the use of an accelerator's memory, and the KV cache that a workload needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inference_catalog import Accelerator, Model

RESERVED_BYTES = 3584 * 1024**2
"""Allowance of aiconfigurator-core 0.12.0 for the CUDA context and graphs, logits and fragmentation."""

COLLECTIVE_BYTES = 392 * 1024**2
"""Buffers of the collective library if devices share a layer: the largest figure in aiconfigurator."""

# Bytes per value of activations, and of embeddings, which checkpoints store in BF16.
_BYTES_PER_NUMBER = 2


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Use of the memory of one accelerator, in bytes."""

    total_bytes: int
    """Memory that the engine may use."""
    weights_bytes: int
    activation_bytes: int
    reserved_bytes: int
    """`weights_bytes`, `activation_bytes`, `reserved_bytes`: Memory that the engine needs before it can cache
    anything."""
    kv_cache_bytes: int
    """Remaining memory for the KV cache; negative if the model does not fit."""
    kv_bytes_per_token: float
    """KV cache of one token on this accelerator."""
    kv_tokens: int
    """Tokens that fit the cache. Devices share layers, so this is the capacity of a whole data parallel
    rank."""
    max_model_len: int
    """Tokens of the longest request. The engine does not start if the cache cannot hold it."""

    @property
    def missing_bytes(self) -> int:
        """Bytes missing for the weights and one longest request; 0 if they fit."""
        return max(0, math.ceil(self.max_model_len * self.kv_bytes_per_token) - self.kv_cache_bytes)

    @property
    def fits(self) -> bool:
        """Whether the engine would start."""
        return self.missing_bytes == 0


def estimate_memory(
    model: Model,
    accelerator: Accelerator,
    tensor_parallel_size: int,
    max_model_len: int,
    max_num_batched_tokens: int,
    *,
    pipeline_parallel_size: int = 1,
    data_parallel_size: int = 1,
    gpu_memory_utilization: float = 0.9,
    kv_cache_dtype: str = "auto",
    request_tokens: float | None = None,
) -> MemoryEstimate:
    """Estimate how an engine divides the memory of each accelerator of a worker.

    ::

        total      = accelerator memory * gpu_memory_utilization
        stage      = layers / PP, rounded up, / layers
        weights    = stage * (experts / (TP * DP) + others / TP), and one embedding / TP more when PP > 1
        activation = 2 bytes * max_num_batched_tokens * attention heads * head size * (4 + 6 / TP)
                     (twice that with experts), plus buffers between the DP ranks:
                     2 * 2 bytes * DP * max_num_batched_tokens * hidden size when DP > 1
        reserved   = 3.5 GiB, and 392 MiB more when TP, PP or DP > 1
        KV cache   = total - weights - activation - reserved
        KV tokens  = KV cache / (stage * KV bytes per token), see ``Model.kv_bytes_per_token``

    In the activation, 4 stands for the residual stream and its copies, which every device holds completely,
    and 6 for the projections, which the devices share. The weights that tensor parallelism replicates (norms,
    routers, latent down-projections, KV heads if there are fewer of them than devices) are below 2 % and are
    covered by the reserve. Experts are distributed evenly over all devices of a stage, whole or sliced.
    ``docs/catalogue.md`` compares the result with aiconfigurator's estimates.

    model: The served model.
    accelerator: The kind of device.
    tensor_parallel_size: Devices that share each layer (TP).
    max_model_len: Tokens of the longest request, prompt and answer.
    max_num_batched_tokens: Most tokens that the engine computes in one step.
    pipeline_parallel_size: Stages of layers (PP). The first and the last stage also hold an embedding.
    data_parallel_size: Ranks that share the experts (DP). Each rank holds everything else completely.
    gpu_memory_utilization: Share of the device's memory that the engine uses, above 0 and at most 1.
    kv_cache_dtype: The engine's name of the data type of the KV cache.
    request_tokens: Tokens of a mean request, if the engine frees what a sliding window no longer sees. None
        if it frees nothing.
    Returns: The estimate for each accelerator of the worker.
    Raises ValueError if a number is out of range, or the KV cache type is unknown.
    """
    counts = {
        "tensor_parallel_size": tensor_parallel_size,
        "max_model_len": max_model_len,
        "max_num_batched_tokens": max_num_batched_tokens,
        "pipeline_parallel_size": pipeline_parallel_size,
        "data_parallel_size": data_parallel_size,
    }
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name}: got {count}, must be at least 1")
    if not 0 < gpu_memory_utilization <= 1:
        raise ValueError(
            f"gpu_memory_utilization: got {gpu_memory_utilization}, must be above 0 and at most 1"
        )
    total = int(accelerator.memory_bytes * gpu_memory_utilization)
    stage_layers = -(-model.layers // pipeline_parallel_size)
    weights = _weights_bytes(model, tensor_parallel_size, data_parallel_size, stage_layers)
    width = _activation_width(model, tensor_parallel_size, data_parallel_size)
    activation = math.ceil(_BYTES_PER_NUMBER * max_num_batched_tokens * width)
    alone = tensor_parallel_size * pipeline_parallel_size * data_parallel_size == 1
    reserved = RESERVED_BYTES + (0 if alone else COLLECTIVE_BYTES)
    kv_cache = total - weights - activation - reserved
    whole = model.kv_bytes_per_token(kv_cache_dtype, tensor_parallel_size, request_tokens=request_tokens)
    kv_bytes_per_token = whole * stage_layers / model.layers
    return MemoryEstimate(
        total_bytes=total,
        weights_bytes=weights,
        activation_bytes=activation,
        reserved_bytes=reserved,
        kv_cache_bytes=kv_cache,
        kv_bytes_per_token=kv_bytes_per_token,
        kv_tokens=max(0, int(kv_cache // kv_bytes_per_token)),
        max_model_len=max_model_len,
    )


def _weights_bytes(
    model: Model, tensor_parallel_size: int, data_parallel_size: int, stage_layers: int
) -> int:
    """Return the weights on a device of the largest stage, in bytes."""
    others = model.weight_bytes - model.expert_weight_bytes
    experts = model.expert_weight_bytes / data_parallel_size
    weights = (others + experts) / tensor_parallel_size * stage_layers / model.layers
    if stage_layers < model.layers:
        embedding = _BYTES_PER_NUMBER * model.vocabulary_size * model.hidden_size
        weights += embedding / tensor_parallel_size
    return math.ceil(weights)


def _activation_width(model: Model, tensor_parallel_size: int, data_parallel_size: int) -> float:
    """Return the values that a device keeps per token while the token passes through a layer."""
    width = model.attention_heads * model.head_size * (2 if model.experts else 1)
    sent = 2 * data_parallel_size * model.hidden_size if data_parallel_size > 1 else 0
    return width * (4 + 6 / tensor_parallel_size) + sent


def kv_tokens_needed(
    *,
    input_tokens: int,
    output_tokens: int,
    requests_per_second: float,
    seconds_per_request: float,
    shared_prefix_ratio: float = 0.0,
) -> int:
    """Return the tokens of KV cache that a worker needs at its share of the peak.

    ::

        concurrent = max(1, requests_per_second * seconds_per_request)         (Little's law)
        shared     = input_tokens * shared_prefix_ratio                        (held once for all requests)
        tokens     = shared + concurrent * (input_tokens - shared + output_tokens)

    Every request counts with its complete answer, because it holds it at its end. One shared prefix is
    assumed. A workload with many prefixes needs more tokens, or has fewer cache hits.

    input_tokens, output_tokens: Mean tokens of a prompt and of an answer.
    requests_per_second: Peak rate that arrives at this worker: the model's peak divided by its replicas.
    seconds_per_request: Mean duration of a request: time to first token plus ``output_tokens`` times the time
        per token.
    shared_prefix_ratio: Share of the prompt that all requests have in common, 0 to below 1.
    Returns: Tokens, rounded up.
    """
    concurrent = max(1.0, requests_per_second * seconds_per_request)
    shared = input_tokens * shared_prefix_ratio
    return math.ceil(shared + concurrent * (input_tokens - shared + output_tokens))
