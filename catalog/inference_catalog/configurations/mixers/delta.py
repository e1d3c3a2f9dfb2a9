"""Linear attention with a state per request: gated delta networks, and Kimi's delta attention."""

from __future__ import annotations

from inference_catalog.cached_layers import CachedLayers, LayerState
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, matrices
from inference_catalog.configurations.mixers.mamba import PLAIN_BYTES, recurrent_state


def gated_delta(
    fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int
) -> LayerPart:
    """Return a layer of Qwen3-Next or Qwen3.5 (``qwen3_next.py`` of vLLM 0.31.0)."""
    del kind, index
    hidden = fields.number("hidden_size")
    keys = fields.number("linear_num_key_heads") * fields.number("linear_key_head_dim")
    heads, size = fields.number("linear_num_value_heads"), fields.number("linear_value_head_dim")
    values, kernel = heads * size, fields.number("linear_conv_kernel_dim", default=4)
    found = matrices(
        architecture.state_path,
        in_proj_qkv=hidden * (2 * keys + values),
        in_proj_z=hidden * values,
        out_proj=values * hidden,
    )
    plain = 2 * heads * hidden + (2 * keys + values) * kernel + 2 * heads + size
    states = (
        LayerState((kernel - 1) * (2 * keys + values), PLAIN_BYTES, columns=kernel - 1),
        recurrent_state(fields, values * fields.number("linear_key_head_dim")),
    )
    return LayerPart(found, plain, cached=(CachedLayers(1, "state", states=states),))


def kimi_delta(
    fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int
) -> LayerPart:
    """Return a layer of Kimi Linear, Kimi K3 (``models/kimi_k3`` of vLLM 0.31.0) or Ling 3.

    The file of Ling 3 (``bailing_moe_v3.py``) has its sizes beside those of the other layers.
    """
    del kind, index
    hidden = fields.number("hidden_size")
    section = fields.section("linear_attn_config")
    own = section or fields
    heads, size = own.number("num_heads" if section else "num_attention_heads"), own.number("head_dim")
    width, kernel = heads * size, own.number("short_conv_kernel_size", default=4)
    whole = own.flag("no_kda_lora")
    full = whole or own.flag("use_full_rank_gate")
    found = matrices(
        architecture.state_path,
        q_proj=hidden * width,
        k_proj=hidden * width,
        v_proj=hidden * width,
        g_proj=hidden * width if full else 0,
        g_a_proj=0 if full else hidden * size,
        g_b_proj=0 if full else size * width,
        f_proj=hidden * width if whole else 0,
        f_a_proj=0 if whole else hidden * size,
        f_b_proj=0 if whole else size * width,
        o_proj=width * hidden,
    )
    # The convolution, the decay and its bias are in 32 bits.
    plain = hidden * heads + 2 * (3 * width * kernel + width + heads) + size
    states = (
        LayerState((kernel - 1) * 3 * width, PLAIN_BYTES, columns=kernel - 1),
        LayerState(width * size, 2 * PLAIN_BYTES),
    )
    return LayerPart(found, plain, cached=(CachedLayers(1, "state", states=states),))
