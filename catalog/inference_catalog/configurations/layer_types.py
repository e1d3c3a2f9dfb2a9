"""The kinds of layers of a model and their order, for engines that divide the layers into stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inference_catalog.cached_layers import CachedLayers
from inference_catalog.configurations.quantisation import SchemeOf, weight_sizes
from inference_catalog.configurations.text_shape import TextShape
from inference_catalog.configurations.weight_modules import WeightModules
from inference_catalog.model import LAYER_LETTERS


def layer_types(
    shape: TextShape, modules: Sequence[WeightModules], cached: Sequence[CachedLayers], scheme_of: SchemeOf
) -> dict[str, Any]:
    """Return ``layer_types`` and ``layer_order`` of an entry; nothing if a model has too many kinds.

    Parameters
    ----------
    shape
        The layers, as ``read_text_shape`` returns them.
    modules
        The weights of each layer.
    cached
        The groups of the entry's ``cached_layers``.
    scheme_of
        How the checkpoint stores a module.
    """
    groups = [replace(each, count=1) for each in cached]
    kinds: dict[str, tuple[str, dict[str, Any]]] = {}
    order = ""
    for part, weights in zip(shape.parts, modules, strict=True):
        found = _layer(weights, [groups.index(each) for each in part.cached], scheme_of)
        letter = LAYER_LETTERS[len(kinds) : len(kinds) + 1]
        order += kinds.setdefault(repr(found), (letter, found))[0]
    if len(kinds) > len(LAYER_LETTERS):
        return {}
    return {"layer_types": [found for _, found in kinds.values()], "layer_order": order}


def _layer(weights: WeightModules, cached: list[int], scheme_of: SchemeOf) -> dict[str, Any]:
    """Return one layer as data, without what it does not have."""
    sizes = weight_sizes(weights, scheme_of)
    found = {
        "weight_bytes": sizes.total,
        "cached": cached,
        "expert_weight_bytes": sizes.experts,
        "shared_expert_bytes": sizes.shared,
        "matrix_parameters": sum(each.parameters for each in weights.matrices),
        "less_divided": [
            {"parts": each.parts, "matrix_bytes": each.matrix_bytes}
            | ({"other_bytes": each.other_bytes} if each.other_bytes else {})
            for each in sizes.less_divided
            if each.bytes
        ],
    }
    return {name: value for name, value in found.items() if value}
