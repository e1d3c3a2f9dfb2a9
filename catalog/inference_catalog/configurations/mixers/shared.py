"""Blocks of attention and a feed-forward network whose weights several layers share (Zamba 2)."""

from __future__ import annotations

from dataclasses import replace

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import AttentionKind
from inference_catalog.configurations.layer_parts import LayerPart, WeightModule, joined, matrices
from inference_catalog.configurations.mixers.grouped import grouped


def shared(fields: ConfigFields, architecture: Architecture, kind: AttentionKind, index: int) -> LayerPart:
    """Return what a layer with a shared block holds and caches (``zamba2.py`` of vLLM 0.31.0).

    The first ``num_mem_blocks`` of these layers bring the blocks, and the others use them in turn. Each has
    its own cache, and its own matrices of a low rank beside those of the block.
    """
    hidden = fields.number("hidden_size")
    before = fields.items("layers_block_type", str)[:index].count("hybrid")
    attention = grouped(fields, architecture, kind, index)
    width = fields.number("intermediate_size", default=4 * hidden)
    rank = fields.number("adapter_rank", default=128)
    inputs = architecture.attention_inputs * hidden
    ranks = rank * (hidden + 2 * width)
    if fields.flag("use_shared_attention_adapter"):
        ranks += 3 * rank * 2 * inputs
    own = LayerPart(
        (
            *matrices("shared_transformer", adapters=ranks),
            WeightModule("linear", hidden * hidden, parts=1),
        )
    )
    if before >= fields.number("num_mem_blocks", default=1):
        return joined([replace(attention, matrices=(), plain=0, whole=0), own])
    network = matrices(
        "shared_transformer.feed_forward", gate_up_proj=2 * hidden * width, down_proj=width * hidden
    )
    norms = inputs + hidden
    return joined([attention, own, LayerPart(network, norms, norms)])
