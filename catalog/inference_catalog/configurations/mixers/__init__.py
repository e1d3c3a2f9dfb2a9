"""How layers of each kind mix tokens: one reader per kind of attention or state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart
from inference_catalog.configurations.mixers.delta import gated_delta, kimi_delta
from inference_catalog.configurations.mixers.grouped import grouped
from inference_catalog.configurations.mixers.latent import latent
from inference_catalog.configurations.mixers.mamba import mamba, mamba2
from inference_catalog.configurations.mixers.packed import packed

Reader = Callable[[ConfigFields, Architecture, AttentionKind, int], LayerPart]
"""Reads the layer of a number, from 0."""

_ATTENTION: Mapping[str, Reader] = MappingProxyType({"gqa": grouped, "mla": latent, "packed": packed})
_STATES: Mapping[str, Reader] = MappingProxyType(
    {"gatedDelta": gated_delta, "kimiDelta": kimi_delta, "mamba": mamba, "mamba2": mamba2}
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
    reader = _STATES[architecture.state] if kind == "state" else _ATTENTION[architecture.attention]
    return reader(fields, architecture, kind, index)
