"""Counts the parameters of a model from the layers in its ``config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters of a model.

    Parameters
    ----------
    total
        Parameters that an engine loads, without layers for multi-token prediction.
    active
        Parameters that are used for one token.
    linear
        Parameters in the projections of attention and feed-forward layers of the language model. FP8
        checkpoints quantise them.
    experts
        Parameters in routed experts. MXFP4 checkpoints quantise them.
    """

    total: int
    active: int
    linear: int
    experts: int


def count_parameters(configuration: dict[str, Any]) -> ParameterCount:
    """Count the parameters of decoder models with grouped-query or latent attention, dense or not."""
    text = configuration.get("text_config", configuration)
    hidden, layers = text["hidden_size"], text["num_hidden_layers"]
    tied = text.get("tie_word_embeddings", configuration.get("tie_word_embeddings", False))
    embeddings = text["vocab_size"] * hidden * (1 if tied else 2)
    experts = text.get("n_routed_experts") or text.get("num_experts") or text.get("num_local_experts") or 0
    attention = _latent_attention(text) if "kv_lora_rank" in text else _grouped_query_attention(text)
    dense_layers = text.get("first_k_dense_replace", 0) if experts else layers
    expert_layers = layers - dense_layers
    expert = 3 * hidden * text.get("moe_intermediate_size", text["intermediate_size"])
    biases = experts * (2 * text["intermediate_size"] + hidden) if text.get("model_type") == "gpt_oss" else 0
    routed = expert_layers * (experts * expert + biases)
    chosen = text.get("num_experts_per_tok", 0) * routed // experts if experts else 0
    dense = dense_layers * 3 * hidden * text["intermediate_size"]
    shared = expert_layers * text.get("n_shared_experts", 0) * expert
    router = expert_layers * experts * hidden
    norms = (2 * layers + 1) * hidden
    linear = layers * attention + dense + shared + routed
    total = linear + embeddings + router + norms + count_vision_parameters(configuration)
    return ParameterCount(total, total - routed + chosen, linear, routed)


def _grouped_query_attention(text: dict[str, Any]) -> int:
    """Count the projections of one layer: query, key, value, output, and their biases."""
    hidden, heads, kv_heads = text["hidden_size"], text["num_attention_heads"], text["num_key_value_heads"]
    head = text.get("head_dim") or hidden // heads
    biases = (heads + 2 * kv_heads) * head + hidden if text.get("attention_bias") else 0
    return int(2 * hidden * heads * head + 2 * hidden * kv_heads * head + biases)


def _latent_attention(text: dict[str, Any]) -> int:
    """Count the projections of one layer of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434)."""
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    query_head = text["qk_nope_head_dim"] + text["qk_rope_head_dim"]
    query = text["q_lora_rank"] * (hidden + heads * query_head)
    compressed = hidden * (text["kv_lora_rank"] + text["qk_rope_head_dim"])
    expanded = text["kv_lora_rank"] * heads * (text["qk_nope_head_dim"] + text["v_head_dim"])
    return int(query + compressed + expanded + heads * text["v_head_dim"] * hidden)


def count_vision_parameters(configuration: dict[str, Any]) -> int:
    """Count a vision transformer and the projections that merge its patches into the language model."""
    vision = configuration.get("vision_config")
    if vision is None:
        return 0
    width, depth = vision["hidden_size"], vision.get("depth") or vision["num_hidden_layers"]
    block = (
        4 * width * width + 2 * width * vision["intermediate_size"] + 9 * width + vision["intermediate_size"]
    )
    patch = vision.get("in_channels", 3) * vision.get("temporal_patch_size", 1) * vision["patch_size"] ** 2
    positions = vision.get("num_position_embeddings") or (vision["image_size"] // vision["patch_size"]) ** 2
    merged = width * vision.get("spatial_merge_size", 1) ** 2
    output = vision.get("out_hidden_size") or configuration["text_config"]["hidden_size"]
    mergers = 1 + len(vision.get("deepstack_visual_indexes", []))
    merger = merged * merged + merged * output if "spatial_merge_size" in vision else width * output
    return int(depth * block + width * (patch + positions) + mergers * merger)
