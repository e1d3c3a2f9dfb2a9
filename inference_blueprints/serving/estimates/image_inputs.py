"""Images in requests: the settings of engines, and the device memory that images need."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import Media
from inference_catalog import Model, Vision

#: For engines, an empty list of domains allows every domain. This domain never resolves (RFC 2606).
_NO_DOMAIN = "media.invalid"
# From Qwen3-VL's ``preprocessor_config.json``: smaller images are scaled up.
_MIN_TOKENS = 64
_BYTES_PER_NUMBER = 2
# Values that a layer keeps per patch, in widths of the tower: the same as for a language model's layer per
# token.
_COPIES = 10


def allowed_domains(resolved: ResolvedWorkers) -> tuple[str, ...]:
    """Return the hosts from which the engine may fetch images; a nonexistent host if none is allowed."""
    media = resolved.model.media
    return tuple(media.allowed_domains) if media and media.allowed_domains else (_NO_DOMAIN,)


def image_pixels(resolved: ResolvedWorkers) -> Mapping[str, int]:
    """Return the least and most pixels to which images are scaled, with the names of the model's processor.

    The processor ignores one without the other (``image_processing_qwen2_vl.py`` of Transformers 5.12).

    Returns: Empty if requests have no images, or the model scales all images to one size.
    """
    media, vision = resolved.model.media, resolved.shape.vision
    if media is None or vision is None or vision.tokens_per_image:
        return {}
    pixels = vision.pixels_per_token
    return {"min_pixels": _MIN_TOKENS * pixels, "max_pixels": media.tokens_per_image * pixels}


def splits_by_image(resolved: ResolvedWorkers) -> bool:
    """Return whether each device of a worker encodes whole images. The engine needs an argument for this."""
    vision = resolved.shape.vision
    return bool(vision and vision.splits_by_image and resolved.tensor_parallel_size > 1)


def with_images(
    memory: MemoryEstimate, resolved: ResolvedWorkers, stage: Model, step_tokens: int
) -> MemoryEstimate:
    """Subtract the memory for images from the KV cache. Workers that read only text keep their estimate.

    ::

        weights    = tower, or tower / TP if devices share each of its layers,
                     minus the part that is already counted: tower / TP
        images     = max(tokens of a step, tokens of the largest image): tokens that are encoded together
        activation = 2 bytes * images on this device * patches per token * width of the tower * 10
                     + 2 bytes * images * values per token that enter the language model

    The tower is part of the published weights. The first stage of a pipeline encodes images. Engines encode
    as many image tokens as they compute in a step: this is vLLM's rule (``compute_mm_encoder_budget`` in
    ``v1/core/encoder_cache_manager.py``). The factor of 10 is an allowance that no measurement confirms.

    memory: The estimate for text only.
    stage: The model, or the stage of it that devices hold.
    step_tokens: Most tokens that the engine computes in one step; 0 for a stage that encodes no images.
    """
    media, vision = resolved.model.media, stage.vision
    if media is None or vision is None:
        return memory
    size = resolved.tensor_parallel_size
    weights = _tower_bytes(vision, resolved)
    activation = _encoding_bytes(media, vision, size, step_tokens) if step_tokens else 0
    return dataclasses.replace(
        memory,
        weights_bytes=memory.weights_bytes + weights,
        activation_bytes=memory.activation_bytes + activation,
        kv_cache_bytes=memory.kv_cache_bytes - weights - activation,
    )


def _tower_bytes(vision: Vision, resolved: ResolvedWorkers) -> int:
    """Return the part of the tower on a device that exceeds its share of all weights."""
    size = resolved.tensor_parallel_size
    held = 1.0 if splits_by_image(resolved) else 1 / size
    return math.ceil(vision.weight_bytes * (held - 1 / size))


def _encoding_bytes(media: Media, vision: Vision, size: int, step_tokens: int) -> int:
    """Return the memory of one device for encoding images, and for the resulting embeddings."""
    tokens = max(step_tokens, media.tokens_per_image)
    here = max(tokens / size, media.tokens_per_image if vision.splits_by_image else 0)
    tower = here * vision.patches_per_token * vision.hidden_size * _COPIES
    return math.ceil(_BYTES_PER_NUMBER * (tower + tokens * vision.embedding_size))
