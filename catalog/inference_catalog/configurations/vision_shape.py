"""Reads the part of a model that encodes images, from its ``config.json``."""

from __future__ import annotations

from typing import Any

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_contracts.records import dataclass

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
    width = vision.number("embed_dim", "hidden_size", "vt_hidden_size")
    patch = vision.number("patch_size")
    fixed = whole.number("mm_tokens_per_image", "vision_soft_tokens_per_image", default=0, minimum=0)
    side = vision.number("image_size", default=0, minimum=0)
    merge = _merge_size(whole, vision)
    if not fixed and not merge:
        vision.report("'spatial_merge_size' is missing, and the file has no 'mm_tokens_per_image'; give one")
    patches = (side // patch) ** 2 if fixed else 0
    deep = len(vision.items("deepstack_visual_indexes", int))
    output = vision.number("out_hidden_size", default=hidden_size)
    parameters = _encoder_parameters(vision, architecture, width, patch)
    parameters += (1 + deep) * _projector_parameters(vision, architecture, merge, output)
    entry = {
        "weight_bytes": _PLAIN_BYTES * parameters,
        "hidden_size": width,
        "patch_pixels": patch**2,
        "patches_per_token": patches // fixed if fixed and patches else max(1, merge) ** 2,
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
    ratio = vision.value("pixel_shuffle_ratio")
    if ratio is not None:
        if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 1:
            vision.wrong("pixel_shuffle_ratio", "a number above 0, at most 1")
            return 1
        return round(1 / ratio)
    compression = vision.section("img_token_compression_config")
    name = "pooling_kernel_size" if vision.has("pooling_kernel_size") else "spatial_merge_size"
    fields = next((each for each in (vision, compression, whole) if each and each.has(name)), whole)
    return fields.number(name, default=0, minimum=0, maximum=64)


def _encoder_parameters(vision: ConfigFields, architecture: Architecture, width: int, patch: int) -> int:
    """Count a vision transformer."""
    depth = vision.number("depth", "num_hidden_layers", "vt_num_hidden_layers", maximum=1000)
    ratio = vision.number("mlp_ratio", default=0, minimum=0) if not vision.has("intermediate_size") else 0
    inner = vision.number("intermediate_size", "vt_intermediate_size", default=ratio * width or None)
    heads = vision.number("qkv_hidden_size", default=width)
    matrices = 3 if architecture.gated_vision else 2
    block = 4 * width * heads + matrices * width * inner + 9 * width + inner
    values = vision.number("in_channels", "num_channels", "in_chans", default=3)
    values *= vision.number("temporal_patch_size", default=1)
    side = vision.number("image_size", default=0, minimum=0) // patch
    if vision.value("position_embedding_type") == "rope" or architecture.projector == "pixtral":
        side = 0
    grid = vision.number("init_pos_emb_height", default=0, minimum=0)
    table = 2 * vision.number("position_embedding_size", default=0, minimum=0)
    positions = vision.number("num_position_embeddings", default=table or (grid or side) ** 2, minimum=0)
    return depth * block + width * (values * patch**2 + positions)


def _projector_parameters(vision: ConfigFields, architecture: Architecture, merge: int, output: int) -> int:
    """Count the projections behind the encoder (``models/*.py`` of vLLM 0.31.0, named by the class)."""
    width = vision.number("embed_dim", "hidden_size", "vt_hidden_size")
    merged = width * max(1, merge) ** 2
    match architecture.projector:
        case "pixtral":
            return merged * width + width * output + output * output
        case "llama4":
            first = vision.number("projector_input_dim", default=4096)
            last = vision.number("projector_output_dim", default=4096)
            inner = vision.number("intermediate_size")  # as many values as the merged patches have
            return inner * first + first * last + last * output
        case "minimax":
            inner = vision.number("projection_dim", default=output)
            return width * inner + inner * output + output * max(1, merge) ** 2 * output + output * output
        case "linear":
            return width * output
    return merged * merged + merged * output if merge else width * output
