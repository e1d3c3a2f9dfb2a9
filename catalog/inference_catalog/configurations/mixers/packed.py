"""DeepSeek V4: a latent vector per token of a window, and one for several older tokens."""

from __future__ import annotations

from inference_catalog.cached_layers import CachedLayers
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, matrices
from inference_catalog.configurations.mixers.latent import index_keys

_PLAIN_BYTES, _FLOAT_BYTES = 2, 4
#: Tokens of a block of the window, and of older tokens (``models/deepseek_v4`` of vLLM 0.31.0).
_WINDOW_BLOCK, _BLOCK = 64, 256
#: A scale of one byte per 64 values, and one byte of padding (its ``fp8_ds_mla`` of 584 bytes).
_SCALED = 64
#: Tokens per entry up to which layers have an indexer and compressors that overlap.
_FINE = 4


def packed(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return the attention of a layer. ``compress_ratios`` has the tokens per entry; 0 for only a window."""
    del kind
    hidden, heads = fields.number("hidden_size"), fields.number("num_attention_heads")
    size, rank = fields.number("head_dim"), fields.number("q_lora_rank")
    groups, output = fields.number("o_groups"), fields.number("o_lora_rank")
    path = architecture.attention_path
    found = matrices(
        path,
        wq_a=hidden * rank,
        wkv=hidden * size,
        wq_b=rank * heads * size,
        wo_a=heads * size * output,
        wo_b=groups * output * hidden,
    )
    rope = fields.number("qk_rope_head_dim")
    entry = size - rope + (size - rope) // _SCALED + 1 + rope * _PLAIN_BYTES
    window = fields.number("sliding_window")
    cached = [CachedLayers(1, "window", window=window, fixed_bytes=entry, block=_WINDOW_BLOCK)]
    ratio = _ratio(fields, index)
    if not ratio:
        return LayerPart(found, cached=tuple(cached))
    overlap = 2 if ratio <= _FINE else 1
    plain = 2 * overlap * hidden * size
    if ratio <= _FINE:
        index_heads, index_size = fields.number("index_n_heads"), fields.number("index_head_dim")
        found += matrices(f"{path}.indexer", wq_b=rank * index_heads * index_size)
        plain += hidden * index_heads + 2 * overlap * hidden * index_size
        cached += [index_keys(index_size, _BLOCK, ratio), _compressor(index_size, ratio, overlap)]
    cached += [
        CachedLayers(1, "latent", fixed_bytes=entry, tokens_per_entry=ratio, block=_BLOCK, own=False),
        _compressor(size, ratio, overlap),
    ]
    return LayerPart(found, plain, plain, tuple(cached))


def _ratio(fields: ConfigFields, index: int) -> int:
    ratios = fields.items("compress_ratios", int)
    layers = fields.number("num_hidden_layers")
    if len(ratios) < layers or any(not 0 <= each <= _BLOCK for each in ratios):
        fields.wrong("compress_ratios", f"a list of {layers} numbers from 0 to {_BLOCK}, one per layer")
        return 0
    return int(ratios[index]) if index < len(ratios) else 0


def _compressor(size: int, ratio: int, overlap: int) -> CachedLayers:
    """Return what a compressor keeps of the tokens that it has not written yet: two vectors in 32 bits."""
    values = 2 * overlap * size
    return CachedLayers(
        1,
        "window",
        window=overlap * ratio,
        fixed_bytes=_FLOAT_BYTES * values,
        block=4 if overlap > 1 else 8,
        own=False,
    )
