"""Short convolutions: layers whose state is the last values that the convolution reads (LFM2)."""

from __future__ import annotations

from inference_catalog.cached_layers import CachedLayers, LayerState
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, matrices
from inference_catalog.configurations.mixers.mamba import PLAIN_BYTES


def convolution(
    fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int
) -> LayerPart:
    """Return a layer of LFM2 (``layers/mamba/short_conv.py`` of vLLM 0.31.0)."""
    del kind, index
    width = fields.number("conv_dim", default=fields.number("hidden_size"))
    kernel = fields.number("conv_L_cache", default=3)
    found = matrices(architecture.state_path, in_proj=3 * width * width, out_proj=width * width)
    plain = width * kernel + (5 * width if fields.flag("conv_bias") else 0)
    states = (LayerState((kernel - 1) * width, PLAIN_BYTES),)
    return LayerPart(found, plain, cached=(CachedLayers(1, "state", states=states),))
