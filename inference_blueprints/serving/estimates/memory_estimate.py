"""Estimates the use of an accelerator's memory, and the KV cache that a workload needs."""

from __future__ import annotations

import dataclasses
import math

from inference_blueprints.serving.estimates.request_estimates import HeldTokens
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import Accelerator, Model, Pipeline
from inference_catalog.cache_rules import CacheUse, mean_token_bytes, pool_block_bytes, request_bytes
from inference_catalog.weight_rules import expert_padding, holds_shared_experts_whole
from inference_contracts.records import dataclass

RESERVED_BYTES = 3584 * 1024**2
"""Allowance of aiconfigurator-core 0.12.0 for the CUDA context and graphs, logits and fragmentation."""

COLLECTIVE_BYTES = 392 * 1024**2
"""Buffers of the collective library if devices share a layer: the largest figure in aiconfigurator."""

# Bytes per value of activations, and of embeddings, which checkpoints store in BF16.
_BYTES_PER_NUMBER = 2


@dataclass(frozen=True, slots=True)
class CacheDemand:
    """What requests take of the KV cache of a device."""

    model: Model
    """The model as devices hold it: a stage of it if there are several."""
    use: CacheUse
    """How the engine is started."""
    mean_tokens: float
    """Tokens that a mean request adds to the cache."""

    @property
    def bytes_per_token(self) -> float:
        """Bytes that a running mean request holds per token."""
        return self._encoded_bytes or mean_token_bytes(self.model, self.use, self.mean_tokens)

    @property
    def _encoded_bytes(self) -> float:
        """Bytes per token of an encoder, which caches nothing; 0 for other models.

        It has keys and values of the tokens of a step in one layer at a time. Counted for every layer, they
        are more than it takes.
        """
        if self.model.cached_layers or self.model.cached_elsewhere:
            return 0.0
        heads = max(1, -(-self.model.kv_heads // self.use.tensor_parallel_size))
        return 2.0 * _BYTES_PER_NUMBER * self.model.layers * heads * self.model.head_size

    def request_bytes(self, tokens: int) -> int:
        """Return the bytes that must be free before the engine admits one request of so many tokens."""
        if self._encoded_bytes:
            return math.ceil(self._encoded_bytes * tokens)
        return request_bytes(self.model, self.use, tokens) + pool_block_bytes(self.model, self.use)


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
    max_model_len: int
    """Tokens of the longest request. The engine does not start if the cache cannot hold it."""
    demand: CacheDemand | None
    """What requests take of the cache; None without a KV cache."""

    @property
    def kv_bytes_per_token(self) -> float:
        """KV cache of one token on this accelerator, as a mean over the tokens of a mean request."""
        return self.demand.bytes_per_token if self.demand else 0.0

    @property
    def kv_tokens(self) -> int:
        """Tokens of mean requests that fit the cache of a data parallel rank, whose devices share layers."""
        each = self.kv_bytes_per_token
        return max(0, int(self.kv_cache_bytes // each)) if each else 0

    @property
    def longest_requests(self) -> float:
        """Longest requests that fit the cache; below 0 if the model itself does not fit."""
        if self.kv_cache_bytes < 0:
            return float(self.kv_cache_bytes)
        each = self.request_bytes(self.max_model_len)
        return self.kv_cache_bytes / each if each else math.inf

    @property
    def missing_bytes(self) -> int:
        """Bytes missing for the weights and one longest request; 0 if they fit."""
        return max(0, self.request_bytes(self.max_model_len) - self.kv_cache_bytes)

    def request_bytes(self, tokens: int) -> int:
        """Return the bytes of the cache that one request of so many tokens needs by the engine's own rule."""
        return self.demand.request_bytes(tokens) if self.demand else 0

    def longest_request(self, most: int) -> int:
        """Return the tokens of the longest request that fits the cache, at most the given ones; 0 if none.

        most: Tokens of the longest request that is wanted.
        """
        shortest, longest = 0, most
        while shortest < longest:
            middle = (shortest + longest + 1) // 2
            if self.request_bytes(middle) <= self.kv_cache_bytes:
                shortest = middle
            else:
                longest = middle - 1
        return shortest

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
    use: CacheUse | None = None,
    mean_tokens: float | None = None,
) -> MemoryEstimate:
    """Estimate how an engine divides the memory of each accelerator of a worker.

    ::

        total      = accelerator memory * gpu_memory_utilization
        weights    = weights of a device (``Model.rank_weight_bytes``)
        activation = 2 bytes * max_num_batched_tokens * attention heads * head size * (4 + 6 / TP)
                     (twice that with experts), plus buffers between the DP ranks:
                     2 * 2 bytes * DP * max_num_batched_tokens * hidden size when DP > 1
        reserved   = 3.5 GiB, and 392 MiB more when TP, PP or DP > 1
        KV cache   = total - weights - activation - reserved
        KV tokens  = KV cache / KV bytes per token of a mean request
        fits       : KV cache >= bytes of one longest request, as the engine admits it

    In the activation, 4 stands for the residual stream and its copies, which every device holds completely,
    and 6 for the projections, which the devices share. Experts are distributed evenly over all devices of a
    stage, whole or sliced.
    ``docs/catalogue.md`` compares the result with aiconfigurator's estimates.

    model: The served model; one of its stages if there are several (``inference_catalog.pipeline_stages``).
    accelerator: The kind of device.
    tensor_parallel_size: Devices that share each layer (TP).
    max_model_len: Tokens of the longest request, prompt and answer.
    max_num_batched_tokens: Most tokens that the engine computes in one step.
    pipeline_parallel_size: Stages of layers (PP), of which `model` is one.
    data_parallel_size: Ranks that share the experts (DP). Each rank holds everything else completely.
    gpu_memory_utilization: Share of the device's memory that the engine uses, above 0 and at most 1.
    use: How the engine uses its cache (``inference_catalog.cache_rules``); by default, every layer keeps
        every token. Its tensor parallel size is the one above.
    mean_tokens: Tokens that a mean request adds to the cache; by default those of the longest.
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
    used = dataclasses.replace(use or CacheUse(), tensor_parallel_size=tensor_parallel_size)
    weights = math.ceil(
        model.rank_weight_bytes(
            tensor_parallel_size,
            data_parallel_size,
            expert_padding(model, used),
            whole_experts=used.whole_experts,
            whole_shared_experts=holds_shared_experts_whole(used, data_parallel_size),
        )
    )
    width = _activation_width(model, tensor_parallel_size, data_parallel_size)
    activation = math.ceil(_BYTES_PER_NUMBER * max_num_batched_tokens * width)
    alone = tensor_parallel_size * pipeline_parallel_size * data_parallel_size == 1
    reserved = RESERVED_BYTES + (0 if alone else COLLECTIVE_BYTES)
    kv_cache = total - weights - activation - reserved
    return MemoryEstimate(
        total_bytes=total,
        weights_bytes=weights,
        activation_bytes=activation,
        reserved_bytes=reserved,
        kv_cache_bytes=kv_cache,
        max_model_len=max_model_len,
        demand=CacheDemand(
            model,
            used,
            max_model_len if mean_tokens is None else mean_tokens,
        ),
    )


def _activation_width(model: Model, tensor_parallel_size: int, data_parallel_size: int) -> float:
    """Return the values that a device keeps per token while the token passes through a layer."""
    width = model.attention_heads * model.head_size * (2 if model.experts else 1)
    sent = 2 * data_parallel_size * model.hidden_size if data_parallel_size > 1 else 0
    return width * (4 + 6 / tensor_parallel_size) + sent


def kv_tokens_needed(
    *,
    shared_tokens: float,
    held: HeldTokens,
    requests_per_second: float,
    seconds_per_request: float,
) -> int:
    """Return the tokens of KV cache that a worker needs at its share of the peak.

    ::

        concurrent = max(1, requests_per_second * seconds_per_request)         (Little's law)
        tokens     = shared + concurrent * mean + 2.33 * sqrt(concurrent * variance)

    With the last part, they suffice for 99 % of the time; it is 0 if all requests are as long as the mean.
    Every request counts with its complete answer, because it holds it at its end. One shared prefix is
    assumed. A workload with many prefixes needs more tokens, or has fewer cache hits.

    shared_tokens: Tokens that all prompts have in common, held once.
    held: What each request holds beside them.
    requests_per_second: Peak rate that arrives at this worker: the model's peak divided by its replicas.
    seconds_per_request: Mean duration of a request: time to first token, and that of each further token (see
        `answer_time`).
    Returns: Tokens, rounded up.
    """
    return math.ceil(shared_tokens + held.needed(max(1.0, requests_per_second * seconds_per_request)))


#: Largest feature maps of the decoder that exist at once: input and output of the convolution after the last
#: doubling of width and height (``Upsample2D`` in ``models/upsampling.py`` of Diffusers 0.40.0).
_LARGEST_MAPS = 2
#: Passes of a step for an image with guidance.
_GUIDED = 2
# Values that a layer keeps per token: the same as for a layer of a language model.
_OWN_COPIES, _SHARED_COPIES = 4, 6


def image_memory(resolved: ResolvedWorkers, pipeline: Pipeline) -> MemoryEstimate:
    """Estimate how a worker that makes images uses the memory of each of its devices.

    ::

        total       = memory of the device: the server takes what it needs, and has no share to set
        weights     = text encoder + VAE + transformer / TP, in 16 bits
        transformer = 2 bytes * 2 * images * (image tokens + prompt tokens) * hidden size * (4 + 6 / TP)
        decoder     = 2 bytes * pixels * channels of its largest feature map * 2
        activation  = the larger of both: the parts of a pipeline run one after the other
        reserved    = as for language models

    Only the transformer is split: each device holds the other parts whole (``text_encoder_tp_size`` of
    `DiffusionParallelConfig` is 1 in ``vllm_omni/diffusion/data.py`` of vllm-omni 0.30.0). The decoder takes
    one image at a time, because the plan sets ``--vae-use-slicing``. A step computes each image twice, with
    and without the prompt, unless the request names ``guidance_scale: 0``: its default is 1
    (``vllm_omni/diffusion/request.py``). Steps run one after the other in the
    same memory. For Z-Image-Turbo on one device, weights and decoder are 21.6 GB; 21.66 GB were published as
    its peak (https://huggingface.co/bahadirakdemir/Z-Image-Turbo-FP8-full). The rule for several images and
    for several devices is compared with no measurement.

    pipeline: The model's parts.
    Returns: Without KV cache: ``kv_cache_bytes`` is what stays free, negative if the model does not fit.
    """
    size, shape, images = resolved.tensor_parallel_size, resolved.shape, resolved.traffic.means.images
    if images is None:
        raise ValueError(f"{resolved.label}: no images in the workload; the rules report it")
    split = math.ceil(pipeline.transformer.loaded_bytes / size)
    weights = pipeline.text_encoder.loaded_bytes + pipeline.vae.loaded_bytes + split
    # The server compares only a size that a request names with the largest one.
    pixels = max(images.pixels, pipeline.default_pixels)
    tokens = _GUIDED * images.per_request * (pipeline.image_tokens(pixels) + pipeline.prompt_tokens)
    copies = _OWN_COPIES + _SHARED_COPIES / size
    transformer = math.ceil(_BYTES_PER_NUMBER * tokens * shape.hidden_size * copies)
    decoder = _BYTES_PER_NUMBER * pixels * pipeline.decoder_channels * _LARGEST_MAPS
    activation = max(transformer, decoder)
    reserved = RESERVED_BYTES + (COLLECTIVE_BYTES if size > 1 else 0)
    total = resolved.accelerator.core.memory_bytes
    return MemoryEstimate(
        total_bytes=total,
        weights_bytes=weights,
        activation_bytes=activation,
        reserved_bytes=reserved,
        kv_cache_bytes=total - weights - activation - reserved,
        max_model_len=pipeline.prompt_tokens,
        demand=None,
    )


def with_draft(memory: MemoryEstimate, resolved: ResolvedWorkers, step_tokens: int) -> MemoryEstimate:
    """Subtract the activation of the draft from the KV cache. Workers without one keep their estimate.

    ::

        activation = 2 bytes * tokens of a step * (values that it reads + 2 * its hidden size)

    Its weights and its cache are those of further layers of the model (``Model.with_draft``).

    memory: The estimate for the model with the layers of its draft.
    step_tokens: Most tokens that the engine computes in one step.
    """
    entry = resolved.model.draft
    if entry is None or entry.draft is None:
        return memory
    activation = _BYTES_PER_NUMBER * step_tokens * (entry.draft.input_size + 2 * entry.hidden_size)
    return dataclasses.replace(
        memory,
        activation_bytes=memory.activation_bytes + activation,
        kv_cache_bytes=memory.kv_cache_bytes - activation,
    )
