"""How layers of each kind mix tokens: one reader per kind of attention or state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, joined
from inference_catalog.configurations.mixers.convolution import convolution
from inference_catalog.configurations.mixers.delta import gated_delta, kimi_delta
from inference_catalog.configurations.mixers.grouped import grouped
from inference_catalog.configurations.mixers.latent import latent
from inference_catalog.configurations.mixers.linear import linear
from inference_catalog.configurations.mixers.mamba import mamba, mamba2
from inference_catalog.configurations.mixers.packed import packed
from inference_catalog.configurations.mixers.shared import shared

Reader = Callable[[ConfigFields, Architecture, AttentionKind, int], LayerPart]
"""Reads the layer of a number, from 0."""

_ATTENTION: Mapping[str, Reader] = MappingProxyType(
    {"gqa": grouped, "mla": latent, "packed": packed, "shared": shared}
)
_STATES: Mapping[str, Reader] = MappingProxyType(
    {
        "convolution": convolution,
        "gatedDelta": gated_delta,
        "kimiDelta": kimi_delta,
        "linear": linear,
        "mamba": mamba,
        "mamba2": mamba2,
    }
)


def mixer_part(
    fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int
) -> LayerPart:
    """Return what a layer holds to mix tokens. Problems are added to the fields.

    Parameters
    ----------
    fields
        The language model's fields.
    architecture
        The class that the file names.
    kind
        Kind of the layer.
    index
        Its number, from 0.
    """
    if kind == "none":
        return LayerPart()
    if kind == "state":
        return _STATES[architecture.state](fields, architecture, kind, index)
    attention = _ATTENTION[architecture.attention]
    if kind == "both":
        state = _STATES[architecture.state](fields, architecture, "state", index)
        return joined([attention(fields, architecture, "full", index), _beside(state)])
    if architecture.attention_modules == 1:
        return attention(fields, architecture, kind, index)
    modules = [
        attention(
            fields,
            replace(architecture, attention_path=f"{architecture.attention_path}.{number}"),
            kind,
            index,
        )
        for number in range(architecture.attention_modules)
    ]
    return joined([modules[0], *map(_beside, modules[1:])])


def _beside(part: LayerPart) -> LayerPart:
    """Return a part whose caches are not of a layer of its own."""
    return replace(part, cached=tuple(replace(each, own=False) for each in part.cached))
