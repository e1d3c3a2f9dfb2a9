"""Attention with keys and values per head: whole, in windows or chunks, with other heads in some layers."""

from __future__ import annotations

from dataclasses import replace

from inference_catalog.cached_layers import CachedLayers
from inference_catalog.configurations.blocks import read_blocks
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import LAYER_TYPES, AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, WeightModule, matrices
from inference_catalog.configurations.mixers.further_caches import convolved, repeated
from inference_contracts.records import dataclass

_PLAIN_BYTES = 2
#: Tokens of the smallest block of MiniMax's sparse attention (``models/minimax_m3`` of vLLM 0.31.0).
_SPARSE_BLOCK = 128


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of a layer; `value_size` is 0 if values are as long as keys."""

    queries: int
    keys: int
    size: int
    value_size: int = 0

    @property
    def values(self) -> int:
        """Length of a value."""
        return self.value_size or self.size


def read_heads(fields: ConfigFields, architecture: Architecture, kind: AttentionKind) -> Heads:
    """Return the heads of layers of a kind.

    Layers with a window may have fields that start with ``swa`` (MiMo-V2), layers without one fields that
    name them ``global`` (``gemma4_layer_config`` of vLLM 0.31.0).

    Parameters
    ----------
    fields
        The language model's fields.
    architecture
        The class that the file names.
    kind
        Kind of the layers.
    """
    hidden = architecture.attention_inputs * fields.number("hidden_size")
    is_window = kind == "window"
    fields = _of_kind(fields, kind)
    queries = fields.number(*(("swa_num_attention_heads",) if is_window else ()), "num_attention_heads")
    own_keys = fields.flag("attention_k_eq_v") and kind == "full"
    first = ("swa_num_key_value_heads",) if is_window else ("num_global_key_value_heads",) if own_keys else ()
    keys = fields.number(*first, "num_key_value_heads", default=queries)
    keys = max((each.kv_heads for each in read_blocks(fields)), default=0) or keys
    shares_keys = bool(architecture.one_kv_head) and fields.flag(architecture.one_kv_head)
    if shares_keys and not fields.flag("new_decoder_architecture"):
        keys = 1
    own_size = {"window": "swa_head_dim", "full": "global_head_dim"}.get(kind, "head_dim")
    size_names = (own_size, "head_dim", "attention_head_dim")
    has_size = any(fields.value(each) is not None for each in size_names)
    if not has_size and hidden % queries:
        fields.report(f"got hidden_size {hidden} and {queries} attention heads; give 'head_dim'")
    if queries % keys:
        fields.report(f"got {queries} attention heads and {keys} KV heads, which must divide them")
    size = fields.number(*size_names, default=max(1, hidden // queries))
    value_names = (*(("swa_v_head_dim",) if is_window else ()), "v_head_dim")
    values = fields.number(*value_names, default=size) if architecture.pattern == "flags" else size
    return Heads(queries, keys, size, 0 if values == size else values)


def _of_kind(fields: ConfigFields, kind: AttentionKind) -> ConfigFields:
    """Return the section with the heads of one type of layers, if that is the kind (Step 3.5)."""
    other = fields.section("attention_other_setting")
    if other is None or LAYER_TYPES.get(str(other.value("attention_type")), ("full", ""))[0] != kind:
        return fields
    return other


def grouped(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return the attention of a layer; the last ``num_kv_shared_layers`` read what earlier ones cache."""
    hidden = fields.number("hidden_size")
    inputs = architecture.attention_inputs * hidden
    heads = _of_layer(fields, read_heads(fields, architecture, kind), index)
    shared = fields.number("num_kv_shared_layers", default=0, minimum=0, null=True)
    shares = shared and index >= fields.number("num_hidden_layers") - shared
    gate = 2 if fields.flag("attn_output_gate", default=architecture.output_gate) else 1
    key, value = (0, 0) if shares else (inputs * heads.keys * heads.size, inputs * heads.keys * heads.values)
    value *= _value_experts(fields, index)
    rank = fields.number("share_q_dim", default=0, minimum=0, null=True)
    found = matrices(
        architecture.attention_path,
        kv_heads=heads.keys,
        g_proj=hidden * gate_width(fields, architecture, heads.queries, heads.values),
        q_proj=0 if rank else gate * inputs * heads.queries * heads.size,
        wq=rank * heads.queries * heads.size,
        k_proj=key,
        v_proj=value,
        r_proj=hidden * heads.queries * fields.number("d_rel", default=0, minimum=0),
        o_proj=hidden * heads.queries * heads.values,
    )
    if rank:  # one query, which becomes that of each head
        found += (WeightModule(f"{architecture.attention_path}.q_proj", inputs * rank, parts=1),)
    plain = 0
    if fields.flag("attention_bias", default=architecture.has_biases):
        plain = (heads.queries + 2 * heads.keys) * heads.size
        plain += hidden if architecture.bias == "qkvo" else 0
    if architecture.encoder or shares:
        return LayerPart(found, plain, cached=() if architecture.encoder else (CachedLayers(1, "none"),))
    own = _cached(fields, kind, heads, index)
    sparse = fields.section("sparse_attention_config")
    chosen = sparse.items("sparse_attention_freq", int) if sparse else []
    if sparse and chosen and chosen[min(index, len(chosen) - 1)]:
        return _with_index(
            LayerPart(found, plain, cached=(own,)), sparse, architecture.attention_path, hidden
        )
    return LayerPart(found, plain, cached=(own, *repeated(fields, own, index), *convolved(fields, own)))


def _of_layer(fields: ConfigFields, heads: Heads, index: int) -> Heads:
    """Return the heads of one layer.

    Keys may have a list of their own (Nemotron-NAS), and so may queries (Laguna).
    """
    blocks = read_blocks(fields)
    if index < len(blocks):
        return replace(heads, keys=blocks[index].kv_heads or heads.keys)
    name = "num_attention_heads_per_layer"
    listed = fields.items(name, int)
    if not listed:
        return heads
    layers = fields.number("num_hidden_layers")
    if len(listed) != layers or any(each < 1 or each % heads.keys for each in listed):
        fields.wrong(name, f"a list of {layers} numbers, each a multiple of the {heads.keys} KV heads")
        return heads
    return replace(heads, queries=listed[min(index, layers - 1)])


def _value_experts(fields: ConfigFields, index: int) -> int:
    """Return how many projections of values a layer has, of which each token uses some (K2 Horizon)."""
    every = fields.number("decoder_sparse_step", default=1)
    has_experts = (index + 1) % every == 0 and index not in fields.items("mlp_only_layers", int)
    return fields.number("mova_num_experts", default=1, minimum=0) or 1 if has_experts else 1


def gate_width(fields: ConfigFields, architecture: Architecture, heads: int, values: int) -> int:
    """Return the values of a gate behind attention; 0 without one.

    Parameters
    ----------
    fields
        The language model's fields.
    architecture
        The class that the file names.
    heads
        Heads of the queries.
    values
        Length of a value.
    """
    given = fields.value(architecture.gate_field) if architecture.gate_field else None
    if not given:
        return 0
    return heads * (1 if given is True or given in ("per-head", "head_wise") else values)


def _cached(fields: ConfigFields, kind: AttentionKind, heads: Heads, index: int) -> CachedLayers:
    names = {"window": "sliding_window", "chunk": "attention_chunk_size"}
    window = fields.number(names[kind], default=8192 if kind == "chunk" else None) if kind in names else 0
    if kind == "window":
        window = _window(fields, window, index)
    block = _SPARSE_BLOCK if fields.has("sparse_attention_config") else 16
    return CachedLayers(
        1,
        "full" if kind == "both" else kind,
        kv_heads=heads.keys,
        head_size=heads.size,
        value_size=heads.value_size,
        window=window,
        block=block,
    )


def _window(fields: ConfigFields, usual: int, index: int) -> int:
    """Return the window of a layer, for which a file may have a list (EXAONE MoE)."""
    name = "sliding_windows"
    listed = fields.value(name)
    if listed is None:
        return usual
    found = listed[min(index, len(listed) - 1)] if isinstance(listed, list) and listed else None
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        fields.wrong(name, "a list with a number above 0 for each layer that has a window")
        return usual
    return found


def _with_index(part: LayerPart, sparse: ConfigFields, path: str, hidden: int) -> LayerPart:
    """Add the projections and the cache of MiniMax's index, which is one key per token in 16 bits."""
    size, heads = sparse.number("sparse_index_dim"), sparse.number("sparse_num_index_heads")
    found = matrices(path, index_q_proj=hidden * heads * size, index_k_proj=hidden * size)
    keys = CachedLayers(
        1, "latent", head_size=size, fixed_bytes=_PLAIN_BYTES * size, block=_SPARSE_BLOCK, own=False
    )
    return LayerPart(part.matrices + found, part.plain, part.whole, (*part.cached, keys))
