"""What the layers of a language model cache, by the shape that its ``config.json`` describes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from inference_catalog.cached_layers import CachedLayers, LayerKind
from inference_catalog.configurations.config_fields import Architecture
from inference_catalog.configurations.text_shape import TextShape

_ORDER = get_args(LayerKind)


def cached_layers(shape: TextShape) -> list[CachedLayers]:
    """Return the groups of equal layers of a model, without layers for multi-token prediction.

    Parameters
    ----------
    shape
        The layers, as ``read_text_shape`` returns them.
    """
    counts: dict[CachedLayers, int] = {}
    for part in shape.parts:
        for each in part.cached:
            counts[each] = counts.get(each, 0) + 1
    groups = [replace(each, count=count) for each, count in counts.items()]
    return sorted(groups, key=lambda each: (not each.own, _ORDER.index(each.kind)))


#: Sizes of heads that vLLM's joined kernels take, and the tokens of their blocks (``TRITON_FLASHINFER`` in
#: ``v1/attention/backends/triton_flashinfer.py`` of 0.31.0).
_JOINED_HEADS, _JOINED_BLOCK = (256, 512), 64


def cache_settings(architecture: Architecture, kv_type: str, head_size: int) -> dict[str, Any]:
    """Return what a class decides about its cache as a whole: fields of ``CacheSettings`` without defaults.

    Parameters
    ----------
    architecture
        The class that a file names.
    kv_type
        Type of the cache that the checkpoint sets; empty if it sets none.
    head_size
        Size of a head.
    """
    is_joined = architecture.joined_kernels and head_size in _JOINED_HEADS
    found = {
        "kv_type": kv_type,
        "states_per_request": architecture.states_per_request,
        "page_alignment": architecture.page_alignment,
        "blackwell_block": _JOINED_BLOCK if is_joined else 0,
    }
    return {name: value for name, value in found.items() if value}
