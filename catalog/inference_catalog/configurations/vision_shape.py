"""Reads the part of a model that encodes images from its ``config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference_catalog.configurations.architecture import Architecture
from inference_catalog.configurations.config_fields import ConfigFields

_PLAIN_BYTES = 2


@dataclass(frozen=True, slots=True)
class VisionShape:
    """The part that encodes images: its entry in the catalogue, and its parameters."""

    entry: dict[str, Any]
    parameters: int


def read_vision_shape(
    whole: ConfigFields, architecture: Architecture, hidden_size: int
) -> VisionShape | None:
    """Read the part that encodes images, which publishers leave in BF16. None for models without one.

    Parameters
    ----------
    whole
        The whole file.
    architecture
        The class that it names.
    hidden_size
        Size of the language model's vectors.
    """
    vision = whole.section("vision_config")
    if vision is None:
        return None
    width = vision.number("hidden_size", "vt_hidden_size")
    patch = vision.number("patch_size")
    fixed = whole.number("mm_tokens_per_image", default=0, minimum=0)
    side = vision.number("image_size", default=0, minimum=0)
    merge = _merge_size(whole, vision)
    if not fixed and not merge:
        vision.report("'spatial_merge_size' is missing, and the file has no 'mm_tokens_per_image'; give one")
    patches = (side // patch) ** 2 if fixed else 0
    deep = len(vision.items("deepstack_visual_indexes", int))
    parameters = _encoder_parameters(vision, width, patch)
    merged = width * merge**2
    output = vision.number("out_hidden_size", default=hidden_size)
    parameters += (1 + deep) * (merged * merged + merged * output if merge else width * output)
    entry = {
        "weight_bytes": _PLAIN_BYTES * parameters,
        "hidden_size": width,
        "patch_pixels": patch**2,
        "patches_per_token": patches // fixed if fixed else merge**2,
        "tokens_per_image": fixed,
        "embedding_size": hidden_size * (1 + deep),
        "splits_by_image": architecture.splits_by_image,
        "scales_to_pixels": architecture.scales_to_pixels,
    }
    return VisionShape(entry, parameters)


def _merge_size(whole: ConfigFields, vision: ConfigFields) -> int:
    """Return the side of the square of patches that become one token; 0 if the file does not say."""
    kernel = vision.items("merge_kernel_size", int)
    if kernel and min(kernel) == max(kernel) > 0:
        return int(kernel[0])
    fields = vision if vision.has("spatial_merge_size") else whole
    return fields.number("spatial_merge_size", default=0, minimum=0, maximum=64)


def _encoder_parameters(vision: ConfigFields, width: int, patch: int) -> int:
    """Count a vision transformer."""
    depth = vision.number("depth", "num_hidden_layers", "vt_num_hidden_layers", maximum=1000)
    inner = vision.number("intermediate_size", "vt_intermediate_size")
    block = 4 * width * width + 2 * width * inner + 9 * width + inner
    values = vision.number("in_channels", default=3) * vision.number("temporal_patch_size", default=1)
    side = vision.number("image_size", default=0, minimum=0) // patch
    grid = vision.number("init_pos_emb_height", default=0, minimum=0)
    positions = vision.number("num_position_embeddings", default=(grid or side) ** 2, minimum=0)
    return depth * block + width * (values * patch**2 + positions)
