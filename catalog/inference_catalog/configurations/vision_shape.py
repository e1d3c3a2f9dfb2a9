"""Reads the part of a model that encodes images, from its ``config.json``."""

from __future__ import annotations

import math
from typing import Any

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.projectors import ProjectorSizes, read_projector
from inference_contracts.records import dataclass

_PLAIN_BYTES = 2
#: Encoders whose feed-forward modules have three matrices, in every class that has them.
_GATED = ("aimv2", "pixtral")


@dataclass(frozen=True, slots=True)
class VisionShape:
    """The part that encodes images: its entry in the catalogue, and its parameters."""

    entry: dict[str, Any]
    parameters: int
    whole_parameters: int
    """Those of them that every device holds whole."""


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
    vision = whole.section("vision_config", architecture.vision_defaults)
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
    layers = _used_layers(whole, vision)
    attention, network = _encoder_layer(vision, architecture, width)
    patches_layer = _patch_parameters(vision, architecture, width, patch)
    projector = read_projector(ProjectorSizes(whole, vision, width, max(1, merge), output), architecture)
    further = output * hidden_size if architecture.further_projection else 0
    parameters = layers * (attention + network) + patches_layer + (1 + deep) * projector.parameters + further
    entry = {
        "weight_bytes": _PLAIN_BYTES * parameters,
        "hidden_size": width,
        "patch_pixels": patch**2,
        "patches_per_token": math.ceil(patches / fixed) if fixed and patches else max(1, merge) ** 2,
        "tokens_per_image": fixed,
        "embedding_size": hidden_size * (1 + deep),
        "splits_by_image": architecture.splits_by_image,
        "scales_to_pixels": architecture.scales_to_pixels,
    }
    held = patches_layer + (1 + deep) * projector.whole + further
    if architecture.whole_vision == "attention":
        held += layers * attention
    return VisionShape(entry, parameters, parameters if architecture.whole_vision == "all" else held)


def _merge_size(whole: ConfigFields, vision: ConfigFields) -> int:
    """Return the side of the square of patches that become one token; 0 if the file does not say."""
    kernel = vision.items("merge_kernel_size", int)
    if kernel and min(kernel) == max(kernel) > 0:
        return int(kernel[0])
    for fields, name in ((vision, "pixel_shuffle_ratio"), (whole, "downsample_ratio")):
        ratio = fields.value(name)
        if ratio is not None:
            if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 1:
                fields.wrong(name, "a number above 0, at most 1")
                return 1
            return round(1 / ratio)
    compression = vision.section("img_token_compression_config")
    given = (
        (fields, name)
        for name in ("pooling_kernel_size", "spatial_merge_size", "hidden_stride", "scale_factor")
        for fields in (vision, compression, whole)
        if fields and fields.has(name)
    )
    fields, name = next(given, (whole, "spatial_merge_size"))
    return fields.number(name, default=0, minimum=0, maximum=64)


def _used_layers(whole: ConfigFields, vision: ConfigFields) -> int:
    """Return the layers of the encoder up to the last whose result is read; engines load no others.

    A class of LLaVA's kind counts from 1 (``_get_num_hidden_layers`` in ``models/llava.py`` of vLLM 0.31.0),
    InternVL from 0 (``select_layer`` in its ``internvl.py``). Both count backwards from -1.
    """
    depth = vision.number("depth", "num_hidden_layers", "vt_num_hidden_layers", maximum=1000)
    for name, first in (("vision_feature_layer", 1), ("select_layer", 0)):
        value = whole.value(name)
        chosen = value if isinstance(value, list) else [] if value is None else [value]
        if not all(type(each) is int and abs(each) <= depth for each in chosen):
            whole.wrong(name, f"a number from -{depth} to {depth}, or a list of such numbers")
        elif chosen:
            places: list[int] = [depth + each if each < 0 else each - first for each in chosen]
            return max(places) + 1
    return depth


def _encoder_layer(vision: ConfigFields, architecture: Architecture, width: int) -> tuple[int, int]:
    """Count a layer of a vision transformer: attention, and what else it has."""
    ratio = vision.number("mlp_ratio", default=0, minimum=0) if not vision.has("intermediate_size") else 0
    inner = vision.number("intermediate_size", "vt_intermediate_size", default=ratio * width or None)
    if architecture.projector == "glm":
        inner = vision.number("out_hidden_size")  # ``Glm4vVisionBlock`` in ``glm4_1v.py`` of vLLM 0.31.0
    is_gated = architecture.gated_vision or vision.value("model_type") in _GATED
    heads = vision.number("qkv_hidden_size", default=width)
    return 4 * width * heads, (3 if is_gated else 2) * width * inner + 9 * width + inner


def _patch_parameters(vision: ConfigFields, architecture: Architecture, width: int, patch: int) -> int:
    """Count the first layer, which reads the pixels of patches, and the table of their positions."""
    values = vision.number("in_channels", "num_channels", "in_chans", default=3)
    values *= vision.number("temporal_patch_size", default=1)
    side = vision.number("image_size", default=0, minimum=0) // patch
    is_pixtral = "pixtral" in (vision.value("model_type"), architecture.projector)
    if is_pixtral or vision.value("position_embedding_type") == "rope":
        side = 0
    grid = vision.number("init_pos_emb_height", default=0, minimum=0)
    table = 2 * vision.number("position_embedding_size", default=0, minimum=0)
    positions = vision.number("num_position_embeddings", default=table or (grid or side) ** 2, minimum=0)
    return width * (values * patch**2 + positions)
