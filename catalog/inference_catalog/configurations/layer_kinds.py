"""Which layers of a model attend to everything, to a window or a chunk, keep a state, do both, or neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from inference_catalog.configurations.blocks import NAME, read_blocks
from inference_catalog.configurations.config_fields import Architecture, ConfigFields

AttentionKind = Literal["full", "window", "chunk", "state", "both", "none"]
"""``state``: linear attention, Mamba or a short convolution; ``both``: attention to every token beside such a
state; ``none``: a layer of only a feed-forward network."""
FeedForwardKind = Literal["dense", "experts", "none", ""]
"""Empty: as the other fields of the file say."""

Kinds = tuple[AttentionKind, FeedForwardKind]
"""Kinds of the two parts of a layer."""

MAX_LAYERS = 1000

LAYER_TYPES: Mapping[str, Kinds] = MappingProxyType(
    {
        "full_attention": ("full", ""),
        "attention": ("full", ""),
        "deepseek_sparse_attention": ("full", ""),
        "sliding_attention": ("window", ""),
        "chunked_attention": ("chunk", ""),
        "conv": ("state", ""),
        "linear_attention": ("state", ""),
        "mamba": ("state", ""),
    }
)
"""Names in ``layer_types``."""
_CONVOLVED: Mapping[str, Kinds] = MappingProxyType({"hybrid": ("full", ""), "hybrid_sliding": ("window", "")})
"""The same of Inkling, whose layers have short convolutions around attention."""
_ALONE: Mapping[str, Kinds] = MappingProxyType(
    {
        "M": ("state", "none"),
        "*": ("full", "none"),
        "E": ("none", "experts"),
        "-": ("none", "dense"),
        "mamba": ("state", "none"),
        "attention": ("full", "none"),
        "moe": ("none", "experts"),
        "mlp": ("none", "dense"),
    }
)
"""Letters of ``hybrid_override_pattern`` and names of ``layers_block_type``, of models whose attention and
feed-forward networks are layers of their own (``nemotron_h.py`` of vLLM 0.31.0)."""


def read_kinds(fields: ConfigFields, architecture: Architecture, layers: int) -> tuple[Kinds, ...]:
    """Return the kinds of each layer. Problems are added to the fields.

    Parameters
    ----------
    fields
        The language model's fields.
    architecture
        The class that the file names.
    layers
        Number of layers.
    """
    if architecture.pattern in _WHOLE:
        return _WHOLE[architecture.pattern](fields, layers)
    types = fields.items("layer_types", str)
    if not types:
        found = _BY_NUMBER[architecture.pattern](fields, layers)
        return tuple((kind, "") for kind in found)
    kinds = _CONVOLVED if architecture.pattern == "local" else LAYER_TYPES
    known = {name for name, (kind, _) in kinds.items() if kind != "state" or architecture.state}
    unknown = sorted(set(types) - known)
    if unknown:
        fields.problems.append(
            f"layer_types: layers of the type {', '.join(unknown)} are not counted for {architecture.name}; "
            f"counted are {', '.join(sorted(known))}"
        )
    elif len(types) not in (layers, layers + fields.number("num_nextn_predict_layers", default=0, minimum=0)):
        fields.wrong("layer_types", f"a list of {layers} texts, one per layer")
    else:
        return tuple(kinds[each] for each in types[:layers])
    return (("full", ""),) * layers


def _late(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
    first = fields.number("max_window_layers", default=layers, minimum=0)
    late = fields.flag("use_sliding_window")
    return tuple("window" if late and index >= first else "full" for index in range(layers))


def _all(kind: AttentionKind) -> Callable[[ConfigFields, int], tuple[AttentionKind, ...]]:
    """Return the rule of families in which all layers have one kind."""
    return lambda _, layers: (kind,) * layers


def _every(
    kind: AttentionKind, *names: str, default: int | None = None
) -> Callable[[ConfigFields, int], tuple[AttentionKind, ...]]:
    """Return the rule of families in which all layers have one kind, except each one of a distance."""

    def rule(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
        distance = fields.number(*names, default=default, maximum=MAX_LAYERS)
        return tuple(kind if index % distance else "full" for index in range(1, layers + 1))

    return rule


def _period(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
    every = fields.number("attn_layer_period", maximum=MAX_LAYERS)
    first = fields.number("attn_layer_offset", minimum=0)
    return tuple("full" if index % every == first else "state" for index in range(layers))


def _chunks(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
    """Return the kinds of Llama 4, whose layers with a 0 have no positions and attend to every token."""
    listed = fields.items("no_rope_layers", int)
    if not listed:
        return _every("chunk", "no_rope_layer_interval", default=4)(fields, layers)
    if len(listed) != layers:
        fields.wrong("no_rope_layers", f"a list of {layers} numbers, one per layer")
        return _all("full")(fields, layers)
    return tuple("chunk" if each else "full" for each in listed)


def _indices(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
    """Return the kinds by the list of the layers that attend, from 0; without it, all do (LFM2)."""
    if not fields.has("full_attn_idxs"):
        return _all("full")(fields, layers)
    chosen = set(fields.items("full_attn_idxs", int))
    return tuple("full" if index in chosen else "state" for index in range(layers))


def _groups(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
    """Return the kinds by groups: the last of each attends, and so do all behind whole groups (Ling 3)."""
    size = fields.number("layer_group_size", maximum=MAX_LAYERS)
    whole = layers // size * size
    return tuple("state" if index % size and index <= whole else "full" for index in range(1, layers + 1))


def _local(fields: ConfigFields, layers: int) -> tuple[AttentionKind, ...]:
    numbers = set(fields.items("local_layer_ids", int))
    return tuple("window" if index in numbers else "full" for index in range(layers))


_BY_NUMBER: Mapping[str, Callable[[ConfigFields, int], tuple[AttentionKind, ...]]] = MappingProxyType(
    {
        "none": _all("full"),
        "all": _all("window"),
        "pattern": _every("window", "sliding_window_pattern", "_sliding_window_pattern"),
        "late": _late,
        "interval": _every("state", "full_attention_interval", default=4),
        "period": _period,
        "chunks": _chunks,
        "both": _all("both"),
        "indices": _indices,
        "groups": _groups,
        "local": _local,
    }
)


def letter_kinds(fields: ConfigFields, name: str) -> tuple[Kinds, ...]:
    """Return the kinds of layers that are attention or a feed-forward network; empty without the field.

    Parameters
    ----------
    fields
        The language model's fields.
    name
        A field with a letter or a name per layer.
    """
    given = fields.value(name)
    if given is None:
        return ()
    known = isinstance(given, list | str) and all(isinstance(each, str) and each in _ALONE for each in given)
    if not known or not given:
        fields.wrong(name, f"letters or names, each one of {', '.join(_ALONE)}")
        return ()
    return tuple(_ALONE[each] for each in given)


def _alone(fields: ConfigFields, layers: int) -> tuple[Kinds, ...]:
    name = "layers_block_type" if fields.has("layers_block_type") else "hybrid_override_pattern"
    found = letter_kinds(fields, name)
    if len(found) != layers:
        fields.wrong(name, f"{layers} letters or names, one per layer")
        return (("state", "none"),) * layers
    return found


def _listed(fields: ConfigFields, layers: int) -> tuple[Kinds, ...]:
    """Return the kinds by the list of the layers of linear attention, which starts at 1 (Kimi Linear)."""
    section = fields.section("linear_attn_config")
    numbers = set(section.items("kda_layers", int)) if section else set()
    if not numbers:
        (section or fields).report(
            "'linear_attn_config.kda_layers' is missing, the layers of linear attention"
        )
    return tuple(("state" if each in numbers else "full", "") for each in range(1, layers + 1))


def _flags(fields: ConfigFields, layers: int) -> tuple[Kinds, ...]:
    """Return the kinds by a list with a 1 for each layer that has a window (MiMo-V2)."""
    flags = fields.items("hybrid_layer_pattern", int)
    if len(flags) != layers:
        fields.wrong("hybrid_layer_pattern", f"a list of {layers} numbers, one per layer")
        return (("full", ""),) * layers
    return tuple(("window" if each else "full", "") for each in flags)


def _hybrid(fields: ConfigFields, layers: int) -> tuple[Kinds, ...]:
    """Return the kinds of Zamba 2: all layers keep a state, and hybrid ones also use a shared block."""
    kinds: Mapping[str, Kinds] = {
        "hybrid": ("both", "none"),
        "linear_attention": ("state", "none"),
        "mamba": ("state", "none"),
    }
    types = fields.items("layers_block_type", str)
    if len(types) != layers or not set(types) <= kinds.keys():
        fields.wrong("layers_block_type", f"a list of {layers} texts, each one of {', '.join(kinds)}")
        return (("state", "none"),) * layers
    return tuple(kinds[each] for each in types)


def _blocks(fields: ConfigFields, layers: int) -> tuple[Kinds, ...]:
    """Return the kinds of layers that may miss a part (Nemotron-NAS)."""
    found = read_blocks(fields)
    if len(found) != layers:
        fields.wrong(NAME, f"a list of {layers} objects, one per layer")
        return (("full", ""),) * layers
    return tuple(("full" if each.kv_heads else "none", "dense" if each.width else "none") for each in found)


_WHOLE: Mapping[str, Callable[[ConfigFields, int], tuple[Kinds, ...]]] = MappingProxyType(
    {
        "alone": _alone,
        "blocks": _blocks,
        "listed": _listed,
        "flags": _flags,
        "hybrid": _hybrid,
        "state": lambda _, layers: (("state", "none"),) * layers,
    }
)
