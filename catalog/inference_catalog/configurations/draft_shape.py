"""Counts a draft of speculative decoding (EAGLE, EAGLE-3) from its ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference_catalog.cached_layers import as_data
from inference_catalog.configurations.cache_shape import cached_layers
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.text_shape import TextShape, read_text_shape
from inference_catalog.model import DraftClass

#: A Llama layer counts a draft's: its widths and heads have the same fields.
_LAYERS_OF = "LlamaForCausalLM"
_BILLION, _PLAIN_BYTES = 1e9, 2
#: Layers of the model whose hidden states EAGLE-3 reads, unless the file says otherwise.
_READ_LAYERS = 3
_OTHER_INPUTS = ("speculators_model_type", "transformer_layer_config", "parallel_drafting", "mask_token_id")


def draft_class(configuration: Mapping[str, Any], known: Mapping[str, DraftClass]) -> DraftClass | None:
    """Return the class of a draft; None if the file is not a draft's.

    A file may name the class of a Llama model. Only its smaller vocabulary then tells that it is a draft.

    Parameters
    ----------
    known
        The classes that are counted, by name.
    """
    named = configuration.get("architectures")
    name = named[0] if isinstance(named, list) and len(named) == 1 else None
    if not isinstance(name, str) or (name == _LAYERS_OF and configuration.get("draft_vocab_size") is None):
        return None
    return known.get(name)


def describe_draft(
    whole: ConfigFields, of: DraftClass, architectures: Mapping[str, Architecture]
) -> dict[str, Any]:
    """Turn the ``config.json`` of a draft into the numbers of a catalogue entry.

    ::

        eagle    = embedding + layers + projection of 2 * hidden size to the hidden size
        eagle3   = embedding + layers + projection of 3 * hidden size of the model to the hidden size
                   + output layer of draft_vocab_size; the first layer reads 2 * hidden size

    Engines drop the embedding if it is the model's own, and share the output layer of ``eagle``
    (``models/llama_eagle.py`` and ``llama_eagle3.py`` of vLLM 0.31.0 and SGLang 0.5.21).

    Parameters
    ----------
    of
        The class that it names.
    architectures
        Model classes that can be counted, by name.
    """
    shape = read_text_shape(whole, architectures[_LAYERS_OF])
    for name in _OTHER_INPUTS:
        if whole.has(name):
            whole.problems.append(f"{name}: drafts with this field are not counted here")
    if whole.has("quantization_config"):
        whole.problems.append("quantization_config: only drafts with weights in 16 bits are counted here")
    is_third = of.method == "eagle3"
    target = whole.number("target_hidden_size", default=shape.hidden_size) if is_third else shape.hidden_size
    inputs = _read_layers(whole) * target if is_third else 2 * shape.hidden_size
    output = whole.number("draft_vocab_size", default=shape.vocabulary_size) if is_third else 0
    whole.check()
    first_reads = 2 if is_third else 1
    matrices, keys = _matrices(shape, first_reads), _key_bytes(shape, first_reads)
    norms = (3 * shape.layers + 1) * shape.hidden_size
    tables = (shape.vocabulary_size + output) * shape.hidden_size
    projection = inputs * shape.hidden_size
    total = matrices + norms + tables + projection
    return {
        "architecture": of.name,
        "parameters_billion": round(total / _BILLION, 2),
        "active_parameters_billion": round(total / _BILLION, 2),
        "layers": shape.layers,
        "hidden_size": shape.hidden_size,
        "vocabulary_size": shape.vocabulary_size,
        "attention_heads": shape.heads.queries,
        "kv_heads": shape.heads.keys,
        "head_size": shape.heads.size,
        "attention": "gqa",
        "cached_layers": as_data(cached_layers(shape)),
        "experts": 0,
        "feed_forward_size": shape.dense_width,
        "weight_type": "bf16",
        "weight_block": 0,
        "weight_bytes": _PLAIN_BYTES * total,
        "expert_weight_bytes": 0,
        "less_divided": [
            {"parts": 1, "matrix_bytes": 0, "other_bytes": _PLAIN_BYTES * (norms + projection)},
            {"parts": shape.heads.keys, "matrix_bytes": keys},
        ],
        "matrix_parameters": matrices,
        "predicted_layers": 0,
        "prediction_weight_bytes": 0,
        "context_length": shape.context_length,
        "vision": None,
        "draft": {
            "method": of.method,
            "engines": list(of.engines),
            "target_hidden_size": target,
            "input_size": inputs,
        },
    }


def _read_layers(whole: ConfigFields) -> int:
    """Return from how many layers of the model it reads hidden states."""
    section = whole.section("eagle_config")
    if section and section.has("use_aux_hidden_state") and not section.flag("use_aux_hidden_state"):
        section.wrong("use_aux_hidden_state", "true; others are not counted here")
    layers = section.items("eagle_aux_hidden_state_layer_ids", int) if section else []
    return whole.number("num_aux_hidden_states", default=len(layers) or _READ_LAYERS)


def _key_bytes(shape: TextShape, first_reads: int) -> int:
    """Return the bytes of the projections to keys and values, of which a device has those of a whole head."""
    keys = 2 * shape.heads.keys * shape.heads.size * shape.hidden_size
    return _PLAIN_BYTES * keys * (shape.layers - 1 + first_reads)


def _matrices(shape: TextShape, first_reads: int) -> int:
    """Return the parameters of the layers' projections; the first layer reads several hidden vectors."""
    query, key = shape.heads.queries * shape.heads.size, shape.heads.keys * shape.heads.size
    reading = (query + 2 * key) * shape.hidden_size
    other = query * shape.hidden_size + 3 * shape.dense_width * shape.hidden_size
    return shape.layers * (reading + other) + (first_reads - 1) * reading
