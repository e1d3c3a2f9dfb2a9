"""The entry of a model whose class is not counted, by the layers and the size of weights that a user gives.

Everything else is read from its ``config.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference_catalog.cached_layers import CachedLayers, as_data
from inference_catalog.configurations.config_fields import ConfigFields
from inference_catalog.configurations.layer_parts import WeightModule
from inference_catalog.configurations.quantisation import quantisation_method, read_scheme
from inference_catalog.configurations.weight_schemes import PLAIN

_BILLION, _PLAIN_BYTES, _LEAST_BYTES = 1e9, 2, 0.5

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HIDDEN = ("hidden_size", "n_embd", "d_model")
_WIDTHS = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "moe_intermediate_size")
_LENGTHS = (
    "max_position_embeddings",
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "n_positions",
    "n_ctx",
)
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
#: A matrix that every quantised checkpoint stores as it stores most of its weights.
_USUAL_MATRIX = WeightModule("model.layers.1.mlp.up_proj", 1)


def example_layers(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return layers as a user may give them: those of the usual case, in which all layers are alike.

    Parameters
    ----------
    configuration
        Content of the ``config.json``. A value that it does not have is 0.
    """
    fields = _text(ConfigFields(configuration))
    count = fields.number(*_LAYERS, default=0, minimum=0)
    rank = fields.number("kv_lora_rank", default=0, minimum=0, null=True)
    if rank:
        size = rank + fields.number("qk_rope_head_dim", default=0, minimum=0)
        return [{"count": count, "kind": "latent", "headSize": size}]
    heads = fields.number(*_HEADS, default=0, minimum=0)
    kv_heads = fields.number(*_KV_HEADS, default=heads, minimum=0)
    return [{"count": count, "kind": "full", "kvHeads": kv_heads, "headSize": _head_size(fields, heads)}]


def describe_given(
    configuration: Mapping[str, Any], layers: Sequence[CachedLayers], weight_bytes: int
) -> dict[str, Any]:
    """Turn a ``config.json``, layers and the size of the weights into the numbers of a catalogue entry.

    Parameters
    ----------
    configuration
        Content of the file.
    layers
        What its layers cache.
    weight_bytes
        Size of its weights.

    Raises
    ------
    ModelConfigError
        If the file misses a size that the plan needs. The message has one line per problem.
    """
    whole = ConfigFields(configuration)
    fields = _text(whole)
    heads = fields.number(*_HEADS, default=1)
    scheme = read_scheme(whole, None)(_USUAL_MATRIX)
    parameters = weight_bytes / scheme.bytes_per_weight
    count = sum(each.count for each in layers if each.own)
    stated = fields.number(*_LAYERS, default=0, minimum=0)
    if stated and count != stated:
        whole.report(
            f"layers: got {count}, and the file has {stated}; give all of them: those without a cache as "
            "kind none, and what a layer caches besides as a group with own: false"
        )
    first = layers[0]
    hidden_size = fields.number(*_HIDDEN)
    vocabulary = fields.number("vocab_size", "padded_vocab_size")
    if weight_bytes < vocabulary * hidden_size * _LEAST_BYTES:
        whole.report(
            f"weightsGib: got {weight_bytes / 2**30:.3g}, which is less than its table of tokens alone takes "
            "in 4 bits"
        )
    # The default of transformers' ``PretrainedConfig``.
    named = fields if fields.has("tie_word_embeddings") else whole
    is_tied = named.flag("tie_word_embeddings", default=True)
    is_latent = first.kind == "latent"
    described = {
        "architecture": configuration["architectures"][0],
        "parameters_billion": round(parameters / _BILLION, 2),
        "active_parameters_billion": round(parameters / _BILLION, 2),
        "layers": count,
        "hidden_size": hidden_size,
        "vocabulary_size": vocabulary,
        "attention_heads": heads,
        "kv_heads": first.kv_heads or heads,
        "head_size": first.head_size or _head_size(fields, heads) or 1,
        "attention": "mla" if is_latent else "gqa",
        "cached_layers": as_data(layers),
        "experts": fields.number(*_EXPERTS, default=0, minimum=0, null=True),
        "feed_forward_size": fields.number(*_WIDTHS, default=4 * hidden_size, null=True) or 4 * hidden_size,
        "weight_type": scheme.weight_type,
        "weight_block": scheme.block,
        "quantisation_method": "" if scheme is PLAIN else quantisation_method(whole, None),
        "weight_bytes": weight_bytes,
        "expert_weight_bytes": 0,
        "output_bytes": 0 if is_tied else _PLAIN_BYTES * vocabulary * hidden_size,
        "matrix_parameters": 0,
        "predicted_layers": 0,
        "prediction_weight_bytes": 0,
        "context_length": fields.number(*_LENGTHS),
        "vision": None,
    }
    whole.check()
    return described


def _text(whole: ConfigFields) -> ConfigFields:
    return whole.section("text_config") or whole


def _head_size(fields: ConfigFields, heads: int) -> int:
    hidden_size = fields.number(*_HIDDEN, default=0, minimum=0)
    return fields.number("head_dim", default=hidden_size // heads if heads else 0, minimum=0)
