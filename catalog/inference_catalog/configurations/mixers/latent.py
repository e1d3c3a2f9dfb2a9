"""Multi-head latent attention, and the indexer of sparse attention (DeepSeek-V2, arXiv:2405.04434)."""

from __future__ import annotations

import math

from inference_catalog.cached_layers import CachedLayers
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, WeightModule, matrices
from inference_catalog.configurations.mixers.grouped import gate_width
from inference_contracts.records import dataclass

#: Scales of the keys of an indexer and of packed latent vectors: four bytes per 128 values.
_SCALE_BYTES, _SCALE_BLOCK = 4, 128
_PLAIN_BYTES = 2
#: Tokens of a block of sparse latent attention (``flashmla_sparse.py`` and ``indexer.py`` in
#: ``v1/attention/backends/mla`` of vLLM 0.31.0).
_SPARSE_BLOCK = 64


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Ranks and head sizes of latent attention; `query_rank` is 0 if queries are not compressed."""

    query_rank: int
    latent_rank: int
    rope_size: int
    plain_size: int
    value_size: int


@dataclass(frozen=True, slots=True)
class Indexer:
    """The indexer of sparse attention: it caches one vector per token in some layers."""

    heads: int
    head_size: int
    layers: tuple[bool, ...]


def read_latent(fields: ConfigFields) -> LatentAttention:
    """Return the ranks. Problems are added to the fields."""
    return LatentAttention(
        query_rank=fields.number("q_lora_rank", default=0, null=True),
        latent_rank=fields.number("kv_lora_rank"),
        rope_size=fields.number("qk_rope_head_dim"),
        plain_size=fields.number("qk_nope_head_dim"),
        value_size=fields.number("v_head_dim"),
    )


def read_indexer(fields: ConfigFields) -> Indexer | None:
    """Return the indexer. Layers of the type ``shared`` use the choice of an earlier layer."""
    if not fields.has("index_head_dim"):
        return None
    layers = fields.number("num_hidden_layers")
    types = fields.items("indexer_types", str) or ["full"] * layers
    if len(types) != layers or not set(types) <= {"full", "shared"}:
        fields.wrong("indexer_types", f"a list of {layers} texts, each 'full' or 'shared'")
    return Indexer(
        heads=fields.number("index_n_heads"),
        head_size=fields.number("index_head_dim"),
        layers=tuple(each == "full" for each in types),
    )


def latent(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return the attention of a layer."""
    del kind
    sizes, indexer = read_latent(fields), read_indexer(fields)
    hidden, heads = fields.number("hidden_size"), fields.number("num_attention_heads")
    query = heads * (sizes.plain_size + sizes.rope_size)
    gate = _gate(fields, heads, sizes) or gate_width(fields, architecture, heads, sizes.value_size)
    found = matrices(
        architecture.attention_path,
        q_a_proj=hidden * sizes.query_rank,
        q_b_proj=sizes.query_rank * query,
        q_proj=0 if sizes.query_rank else hidden * query,
        kv_a_proj_with_mqa=hidden * (sizes.latent_rank + sizes.rope_size),
        kv_b_proj=sizes.latent_rank * heads * (sizes.plain_size + sizes.value_size),
        g_proj=hidden * gate,
        o_proj=heads * sizes.value_size * hidden,
    )
    size = sizes.latent_rank + sizes.rope_size
    if architecture.whole_keys:
        # Values are padded to the length of keys (``minicpm3.py`` of vLLM 0.31.0).
        whole = CachedLayers(1, "full", kv_heads=heads, head_size=sizes.plain_size + sizes.rope_size)
        return LayerPart(found, 0, cached=(whole,))
    if indexer is None:
        return LayerPart(found, 0, cached=(CachedLayers(1, "latent", head_size=size),))
    vectors = CachedLayers(1, "latent", head_size=size, packed_bytes=_packed(sizes), block=_SPARSE_BLOCK)
    if not indexer.layers[min(index, len(indexer.layers) - 1)]:
        return LayerPart(found, 0, cached=(vectors,))
    return LayerPart(
        found + _index_matrices(architecture.attention_path, hidden, sizes, indexer),
        hidden * indexer.heads,
        hidden * indexer.heads,
        (vectors, index_keys(indexer.head_size, _SPARSE_BLOCK)),
    )


def _gate(fields: ConfigFields, heads: int, sizes: LatentAttention) -> int:
    """Return the values of a gate behind attention; 0 without one (Kimi K3, HY V4)."""
    if fields.flag("gated_mla"):
        return heads * (1 if fields.value("gating_type") == "headwise" else sizes.value_size)
    return heads * sizes.value_size if fields.flag("mla_use_output_gate") else 0


def index_keys(size: int, block: int, tokens_per_entry: int = 1) -> CachedLayers:
    """Return the keys of an indexer: a byte per value, and scales.

    Parameters
    ----------
    size
        Values of a key.
    block
        Tokens of the smallest block.
    tokens_per_entry
        Tokens that share a key.
    """
    bytes_of_key = size + _SCALE_BYTES * math.ceil(size / _SCALE_BLOCK)
    return CachedLayers(
        1,
        "latent",
        fixed_bytes=bytes_of_key,
        tokens_per_entry=tokens_per_entry,
        block=block,
        own=False,
    )


def _packed(sizes: LatentAttention) -> int:
    """Return the bytes of a vector in the layout ``fp8_ds_mla``.

    It keeps the compressed values in FP8 with scales, and the position in 16 bits: 656 bytes for 512 + 64
    values (``v1/attention/backends/mla/flashmla_sparse.py`` of vLLM 0.31.0).
    """
    scales = _SCALE_BYTES * math.ceil(sizes.latent_rank / _SCALE_BLOCK)
    return sizes.latent_rank + scales + sizes.rope_size * _PLAIN_BYTES


def _index_matrices(
    path: str, hidden: int, sizes: LatentAttention, indexer: Indexer
) -> tuple[WeightModule, ...]:
    query = (sizes.query_rank or hidden) * indexer.heads * indexer.head_size
    return matrices(f"{path}.indexer", wq_b=query, wk=hidden * indexer.head_size)
