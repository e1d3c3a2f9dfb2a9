"""Reads the feed-forward networks of a language model: one per layer, or a mixture of experts."""

from __future__ import annotations

import math

from inference_catalog.configurations.blocks import read_blocks
from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.layer_kinds import FeedForwardKind
from inference_catalog.configurations.layer_parts import LayerPart, WeightModule
from inference_contracts.records import dataclass

_MAX_FACTOR = 100
_SHARED_WIDTHS = ("moe_shared_expert_intermediate_size",)
_ALTERNATIVE_WIDTHS = ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts; `layers` says which layers have one."""

    count: int
    width: int
    chosen: int
    shared_width: int
    latent_size: int
    """Size of the vectors that the routed experts read; 0 if it is the hidden size."""
    layers: tuple[bool, ...]
    empty: int = 0
    """Experts without weights, which a router also knows (LongCat)."""


@dataclass(frozen=True, slots=True)
class FeedForward:
    """The feed-forward networks of a model."""

    hidden_size: int
    dense_width: int
    experts: Experts | None
    widths: tuple[int, ...] = ()
    """Width of each layer, where the file has a list of them; empty if all are `dense_width`."""


def read_feed_forward(
    fields: ConfigFields, architecture: Architecture, kinds: tuple[FeedForwardKind, ...], hidden_size: int
) -> FeedForward:
    """Read the networks. Problems are added to the fields.

    Parameters
    ----------
    fields
        The language model's fields.
    architecture
        The class that the file names.
    kinds
        Kind of each layer.
    hidden_size
        Size of the language model's vectors.
    """
    if "dense" not in kinds and set(kinds) <= {"none"}:
        return FeedForward(hidden_size, 1, None)
    widths = _widths(fields, len(kinds))
    width = max(widths, default=0) or _dense_width(fields, architecture)
    return FeedForward(hidden_size, width, _experts(fields, kinds), widths)


def feed_forward_part(
    networks: FeedForward,
    architecture: Architecture,
    kind: FeedForwardKind,
    like: int,
    *,
    double: bool = False,
) -> LayerPart:
    """Return the network of a layer.

    Parameters
    ----------
    networks
        The networks of the model.
    architecture
        The class that the file names.
    kind
        Kind of the layer.
    like
        Number of the layer, from 0.
    double
        Whether a network without experts is twice as wide.
    """
    if kind == "none":
        return LayerPart()
    experts, hidden = networks.experts, networks.hidden_size
    has_experts = experts is not None and experts.layers[like]
    found: list[WeightModule] = []
    biases = 0
    if not has_experts or architecture.dense_beside_experts:
        width = networks.widths[like] if networks.widths else networks.dense_width
        width *= 2 if double else 1
        path = architecture.feed_forward if kind == "dense" else architecture.dense_path
        several = architecture.attention_modules
        for number in range(several):
            module = f"{path}.{number}" if several > 1 else path
            is_shared = architecture.whole_with_ranks == "networks" and experts is not None
            found += _network(module, hidden * width, architecture, is_shared=is_shared)
        biases = width + hidden if architecture.has_biases else 0
    if experts is None or not has_experts:
        return LayerPart(tuple(found), biases)
    path = f"{architecture.feed_forward}." if architecture.feed_forward else ""
    size = experts.latent_size or hidden
    found += _network(f"{path}experts.0", experts.count * size * experts.width, architecture, is_expert=True)
    if experts.shared_width:
        shared = f"{path}{architecture.shared_expert}"
        if "." in architecture.shared_expert:
            shared = architecture.shared_expert.removeprefix(".")
        is_shared = architecture.whole_with_ranks != "none"
        found += _network(shared, hidden * experts.shared_width, architecture, is_shared=is_shared)
    router = (experts.count + experts.empty) * hidden * (2 if architecture.wide_router else 1)
    whole = router + (hidden if architecture.shared_expert_gate else 0)
    divided = experts.count * (2 * experts.width + hidden) if architecture.expert_bias else 0
    if experts.latent_size and architecture.latent_names:
        down, up = architecture.latent_names
        found += [WeightModule(f"{path}{name}", hidden * size, parts=1) for name in (down, up)]
    elif experts.latent_size:
        whole += 2 * hidden * size
    return LayerPart(tuple(found), whole + divided, whole)


def _network(
    path: str,
    parameters: int,
    architecture: Architecture,
    *,
    is_expert: bool = False,
    is_shared: bool = False,
) -> list[WeightModule]:
    start = f"{path}." if path else ""
    if is_expert and architecture.feed_forward == "block_sparse_moe":
        names: tuple[str, ...] = ("w1", "w3", "w2")
    else:
        names = ("gate_proj", "up_proj", "down_proj") if architecture.gated else ("up_proj", "down_proj")
    return [WeightModule(f"{start}{name}", parameters, is_expert, is_shared=is_shared) for name in names]


def _widths(fields: ConfigFields, layers: int) -> tuple[int, ...]:
    """Return the widths of layers that have one each; empty if the file does not list them."""
    blocks = read_blocks(fields)
    if blocks:
        return tuple(each.width for each in blocks) if len(blocks) == layers else ()
    name = "intermediate_size"
    if not isinstance(fields.value(name), list):
        return ()
    listed = fields.items(name, int)
    if len(listed) != layers or min(listed, default=0) < 1:
        fields.wrong(name, f"a number, or a list of {layers} numbers above 0")
        return ()
    return tuple(listed)


def _dense_width(fields: ConfigFields, architecture: Architecture) -> int:
    """Return the width of a layer without experts."""
    names = ("intermediate_size_mlp", "dense_intermediate_size", architecture.dense_width)
    first = next((each for each in names if each and fields.has(each)), None)
    if first:
        return fields.number(first)
    factor = architecture.width_factor
    default = factor * fields.number("hidden_size") if factor else None
    width = fields.number("intermediate_size", "moe_intermediate_size", default=default)
    if fields.flag("block_auto_adjust_ff_dim"):
        return _adjusted(fields, width)
    return width // 2 if architecture.halved_width else width


def _adjusted(fields: ConfigFields, width: int) -> int:
    """Return two thirds of a width, scaled and rounded up (``Lfm2MLP`` in ``lfm2.py`` of vLLM 0.31.0)."""
    factor = fields.value("block_ffn_dim_multiplier")
    if factor is not None and not (isinstance(factor, int | float) and 0 < factor <= _MAX_FACTOR):
        fields.wrong("block_ffn_dim_multiplier", f"a number above 0, at most {_MAX_FACTOR}")
        factor = 1
    multiple = fields.number("block_multiple_of", default=256)
    scaled = int((1 if factor is None else factor) * int(2 * width / 3))
    return max(1, math.ceil(scaled / multiple) * multiple)


def _experts(fields: ConfigFields, kinds: tuple[FeedForwardKind, ...]) -> Experts | None:
    """Return the experts; None for dense models. The names are those of different families."""
    names = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
    count = fields.number(*names, default=0, minimum=0, maximum=100_000, null=True)
    if not count or (fields.has("enable_moe_block") and not fields.flag("enable_moe_block")):
        return None
    width = fields.number("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    number = fields.number("n_shared_experts", "num_shared_experts", default=0, minimum=0, null=True)
    shared = number * fields.number(*_SHARED_WIDTHS, default=width, minimum=0)
    chosen = fields.number(
        "num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k", "moe_top_k", "top_k_experts"
    )
    if chosen > count:
        fields.report(f"got {chosen} experts per token of {count} experts")
    return Experts(
        count=count,
        width=width,
        chosen=chosen,
        shared_width=shared or fields.number(*_ALTERNATIVE_WIDTHS, default=0, minimum=0),
        latent_size=fields.number(
            "moe_latent_size", "routed_expert_hidden_size", default=0, minimum=0, null=True
        ),
        layers=_expert_layers(fields, kinds),
        empty=fields.number("zero_expert_num", default=0, minimum=0, null=True),
    )


def _expert_layers(fields: ConfigFields, kinds: tuple[FeedForwardKind, ...]) -> tuple[bool, ...]:
    """Return which layers have experts, by the rules of the families."""
    if any(kinds):
        return tuple(kind == "experts" for kind in kinds)
    layers = len(kinds)
    listed = _listed_layers(fields, layers)
    if listed:
        return listed
    first = fields.number("first_k_dense_replace", default=0, minimum=0, null=True)
    every = fields.number(
        "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period", default=1
    )
    offset = fields.number("expert_layer_offset", default=every - 1, minimum=0)
    dense = set(fields.items("mlp_only_layers", int))
    stride = fields.number("moe_layer_freq", default=1)
    return tuple(
        index >= first and index % stride == 0 and index % every == offset and index not in dense
        for index in range(layers)
    )


def _listed_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return which layers have experts, if the file lists them; else nothing."""
    types = fields.items("mlp_layer_types", str)
    if types:
        if len(types) != layers or not set(types) <= {"dense", "sparse"}:
            fields.wrong("mlp_layer_types", f"a list of {layers} texts, each 'dense' or 'sparse'")
            return (False,) * layers
        return tuple(each == "sparse" for each in types)
    if fields.has("moe_layers_enum"):
        numbers = _numbers(fields, "moe_layers_enum")
        return tuple(index in numbers for index in range(layers))
    if not isinstance(fields.value("moe_layer_freq"), list):
        return ()
    chosen = fields.items("moe_layer_freq", int)
    if len(chosen) != layers:
        fields.wrong("moe_layer_freq", f"a number or a list of {layers} numbers")
        return (False,) * layers
    return tuple(bool(each) for each in chosen)


def _numbers(fields: ConfigFields, name: str) -> set[int]:
    """Return the numbers of layers in a text, with commas between them (Step 3)."""
    given = fields.value(name)
    parts = [each.strip() for each in given.split(",")] if isinstance(given, str) else []
    if not parts or not all(each.isascii() and each.isdigit() for each in parts):
        fields.wrong(name, "numbers of layers with commas between them, such as '3,4,5'")
        return set()
    return set(map(int, parts))
