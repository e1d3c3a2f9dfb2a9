"""Linear attention whose state is a matrix per head (Lightning Attention, arXiv:2401.04658)."""

from __future__ import annotations

from inference_catalog.cached_layers import CachedLayers, LayerState
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, matrices
from inference_catalog.configurations.mixers.mamba import PLAIN_BYTES


def linear(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return a layer of Ling 2.5 (``layers/mamba/linear/bailing_linear_attn.py`` of vLLM 0.31.0)."""
    del kind, index
    hidden, heads = fields.number("hidden_size"), fields.number("num_attention_heads")
    size = fields.number("head_dim", default=max(1, hidden // heads))
    width = heads * size
    found = matrices(
        architecture.state_path,
        query_key_value=hidden * 3 * width,
        g_proj=hidden * width,
        dense=width * hidden,
    )
    both = fields.flag("use_bias")
    plain = width + (3 * width if both or fields.flag("use_qkv_bias") else 0) + (hidden if both else 0)
    states = (LayerState(width * size, PLAIN_BYTES),)
    return LayerPart(found, plain, cached=(CachedLayers(1, "state", states=states),))
