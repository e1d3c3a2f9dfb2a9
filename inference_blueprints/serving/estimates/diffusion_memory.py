"""Device memory of a worker that makes images."""

from __future__ import annotations

import math

from inference_blueprints.serving.estimates.memory_estimate import (
    COLLECTIVE_BYTES,
    RESERVED_BYTES,
    MemoryEstimate,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import Pipeline

_BYTES_PER_NUMBER = 2
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
    size, shape, images = resolved.tensor_parallel_size, resolved.shape, resolved.model.workload.images
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
        kv_bytes_per_token=0.0,
        kv_tokens=0,
        max_model_len=pipeline.prompt_tokens,
    )
