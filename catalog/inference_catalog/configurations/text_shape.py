"""Reads the layers of a language model, and of its vision part, from its ``config.json``."""

from __future__ import annotations

from typing import Any

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_contracts.records import dataclass

_PLAIN_BYTES = 2


@dataclass(frozen=True, slots=True)
class VisionShape:
    """The part that encodes images: its entry in the catalogue, and its parameters."""

    entry: dict[str, Any]
    parameters: int


def read_vision_shape(
    whole: ConfigFields, architecture: Architecture, hidden_size: int
) -> VisionShape | None:
    """Read the part that encodes images, which publishers leave in BF16. None for models without one.

    Parameters
    ----------
    whole
        The whole file.
    architecture
        The class that it names.
    hidden_size
        Size of the language model's vectors.
    """
    vision = whole.section("vision_config")
    if vision is None:
        return None
    width = vision.number("hidden_size", "vt_hidden_size")
    patch = vision.number("patch_size")
    fixed = whole.number("mm_tokens_per_image", default=0, minimum=0)
    side = vision.number("image_size", default=0, minimum=0)
    merge = _merge_size(whole, vision)
    if not fixed and not merge:
        vision.report("'spatial_merge_size' is missing, and the file has no 'mm_tokens_per_image'; give one")
    patches = (side // patch) ** 2 if fixed else 0
    deep = len(vision.items("deepstack_visual_indexes", int))
    parameters = _encoder_parameters(vision, width, patch)
    merged = width * merge**2
    output = vision.number("out_hidden_size", default=hidden_size)
    parameters += (1 + deep) * (merged * merged + merged * output if merge else width * output)
    entry = {
        "weight_bytes": _PLAIN_BYTES * parameters,
        "hidden_size": width,
        "patch_pixels": patch**2,
        "patches_per_token": patches // fixed if fixed else merge**2,
        "tokens_per_image": fixed,
        "embedding_size": hidden_size * (1 + deep),
        "splits_by_image": architecture.splits_by_image,
        "scales_to_pixels": architecture.scales_to_pixels,
    }
    return VisionShape(entry, parameters)


def _merge_size(whole: ConfigFields, vision: ConfigFields) -> int:
    """Return the side of the square of patches that become one token; 0 if the file does not say."""
    kernel = vision.items("merge_kernel_size", int)
    if kernel and min(kernel) == max(kernel) > 0:
        return int(kernel[0])
    fields = vision if vision.has("spatial_merge_size") else whole
    return fields.number("spatial_merge_size", default=0, minimum=0, maximum=64)


def _encoder_parameters(vision: ConfigFields, width: int, patch: int) -> int:
    """Count a vision transformer."""
    depth = vision.number("depth", "num_hidden_layers", "vt_num_hidden_layers", maximum=1000)
    inner = vision.number("intermediate_size", "vt_intermediate_size")
    block = 4 * width * width + 2 * width * inner + 9 * width + inner
    values = vision.number("in_channels", default=3) * vision.number("temporal_patch_size", default=1)
    side = vision.number("image_size", default=0, minimum=0) // patch
    grid = vision.number("init_pos_emb_height", default=0, minimum=0)
    positions = vision.number("num_position_embeddings", default=(grid or side) ** 2, minimum=0)
    return depth * block + width * (values * patch**2 + positions)


_MAX_LAYERS = 1000
_FULL = ("full_attention", "deepseek_sparse_attention")
_WINDOWED = "sliding_attention"
_UNCOUNTED_FIELDS = (
    "linear_num_key_heads",
    "linear_attn_config",
    "mamba_num_heads",
    "mamba_d_state",
    "ssm_state_size",
    "hybrid_override_pattern",
    "hybrid_layer_pattern",
    "global_head_dim",
    "num_global_key_value_heads",
    "attention_k_eq_v",
    "num_kv_shared_layers",
    "compress_ratios",
    "block_configs",
)
"""Fields of models whose layers keep other state than keys and values of one size."""


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


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts; `layers` says which layers have one."""

    count: int
    width: int
    chosen: int
    shared_width: int
    layers: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class TextShape:
    """The layers of a language model, in its own words."""

    layers: int
    hidden_size: int
    vocabulary_size: int
    attention_heads: int
    kv_heads: int
    head_size: int
    dense_width: int
    tied: bool
    has_bias: bool
    latent: LatentAttention | None
    indexer: Indexer | None
    experts: Experts | None
    window: int
    windowed: tuple[bool, ...]
    context_length: int
    predicted_layers: int


def read_text_shape(whole: ConfigFields, architecture: Architecture) -> TextShape:
    """Read the layers. Problems are added to the fields.

    Parameters
    ----------
    whole
        The whole file.
    architecture
        The class that it names.
    """
    fields = whole.section("text_config", architecture.defaults) or whole
    for name in _UNCOUNTED_FIELDS:
        if fields.has(name) and fields.value(name) not in ([], {}, False, 0):
            fields.problems.append(f"{name}: layers with this field keep state that is not counted here")
    layers = fields.number("num_hidden_layers", maximum=_MAX_LAYERS)
    hidden_size = fields.number("hidden_size")
    heads = fields.number("num_attention_heads")
    latent = _latent(fields) if architecture.attention == "mla" else None
    kv_heads = fields.number("num_key_value_heads", default=heads)
    if not fields.has("head_dim") and "head_dim" not in architecture.defaults and hidden_size % heads:
        fields.report(f"got hidden_size {hidden_size} and {heads} attention heads; give 'head_dim'")
    if latent is None and heads % kv_heads:
        fields.report(f"got {heads} attention heads and {kv_heads} KV heads, which must divide them")
    windowed = _windowed(fields, architecture, layers)
    context_length = fields.number("max_position_embeddings")
    window = fields.number("sliding_window", default=0, null=True) if any(windowed) else 0
    return TextShape(
        layers=layers,
        hidden_size=hidden_size,
        vocabulary_size=fields.number("vocab_size"),
        attention_heads=heads,
        kv_heads=kv_heads,
        head_size=latent.value_size
        if latent
        else fields.number("head_dim", default=max(1, hidden_size // heads)),
        dense_width=_dense_width(fields),
        tied=_tied(fields, whole),
        has_bias=fields.flag("attention_bias"),
        latent=latent,
        indexer=_indexer(fields, layers),
        experts=_experts(fields, layers),
        window=window,
        windowed=windowed if window else (False,) * layers,
        context_length=context_length,
        predicted_layers=fields.number(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, minimum=0, maximum=_MAX_LAYERS
        ),
    )


def _tied(fields: ConfigFields, whole: ConfigFields) -> bool:
    """Whether the embedding is also the output layer. Either object may say so."""
    return (fields if fields.has("tie_word_embeddings") else whole).flag(
        "tie_word_embeddings", default=bool(fields.value("tie_word_embeddings"))
    )


def _dense_width(fields: ConfigFields) -> int:
    """Return the width of a layer without experts."""
    if fields.has("intermediate_size_mlp"):
        return fields.number("intermediate_size_mlp")
    return fields.number("intermediate_size", "moe_intermediate_size")


def _latent(fields: ConfigFields) -> LatentAttention:
    return LatentAttention(
        query_rank=fields.number("q_lora_rank", default=0, null=True),
        latent_rank=fields.number("kv_lora_rank"),
        rope_size=fields.number("qk_rope_head_dim"),
        plain_size=fields.number("qk_nope_head_dim"),
        value_size=fields.number("v_head_dim"),
    )


def _indexer(fields: ConfigFields, layers: int) -> Indexer | None:
    """Return the indexer. Layers of the type ``shared`` use the choice of an earlier layer."""
    if not fields.has("index_head_dim"):
        return None
    types = fields.items("indexer_types", str) or ["full"] * layers
    if len(types) != layers or not set(types) <= {"full", "shared"}:
        fields.wrong("indexer_types", f"a list of {layers} texts, each 'full' or 'shared'")
    return Indexer(
        heads=fields.number("index_n_heads"),
        head_size=fields.number("index_head_dim"),
        layers=tuple(each == "full" for each in types),
    )


def _experts(fields: ConfigFields, layers: int) -> Experts | None:
    """Return the experts; None for dense models. The names are those of different families."""
    names = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
    count = fields.number(*names, default=0, minimum=0, maximum=100_000, null=True)
    if not count:
        return None
    width = fields.number("moe_intermediate_size", "intermediate_size")
    shared = fields.number("n_shared_experts", "num_shared_experts", default=0, minimum=0, null=True) * width
    chosen = fields.number("num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k")
    if chosen > count:
        fields.report(f"got {chosen} experts per token of {count} experts")
    return Experts(
        count=count,
        width=width,
        chosen=chosen,
        shared_width=shared
        or fields.number("shared_expert_intermediate_size", "shared_intermediate_size", default=0, minimum=0),
        layers=_expert_layers(fields, layers),
    )


def _expert_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return which layers have experts, by the rules of the families."""
    types = fields.items("mlp_layer_types", str)
    if types:
        if len(types) != layers or not set(types) <= {"dense", "sparse"}:
            fields.wrong("mlp_layer_types", f"a list of {layers} texts, each 'dense' or 'sparse'")
        return tuple(each == "sparse" for each in types)
    first = fields.number("first_k_dense_replace", default=0, minimum=0, null=True)
    every = fields.number("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    dense = set(fields.items("mlp_only_layers", int))
    if isinstance(fields.value("moe_layer_freq"), list):
        chosen = fields.items("moe_layer_freq", int)
        if len(chosen) != layers:
            fields.wrong("moe_layer_freq", f"a number or a list of {layers} numbers")
        return tuple(bool(each) for each in chosen)
    stride = fields.number("moe_layer_freq", default=1)
    return tuple(
        index >= first and index % stride == 0 and (index + 1) % every == 0 and index not in dense
        for index in range(layers)
    )


def _windowed(fields: ConfigFields, architecture: Architecture, layers: int) -> tuple[bool, ...]:
    """Return which layers see only a window of tokens."""
    types = fields.items("layer_types", str)
    if types:
        unknown = sorted(set(types) - {*_FULL, _WINDOWED})
        if unknown:
            fields.problems.append(
                f"layer_types: layers of the type {', '.join(unknown)} keep state that is not counted here; "
                f"counted are {', '.join((*_FULL, _WINDOWED))}"
            )
        elif len(types) != layers:
            fields.wrong("layer_types", f"a list of {layers} texts, one per layer")
        return tuple(each == _WINDOWED for each in types)
    if architecture.windows == "pattern":
        every = fields.number("sliding_window_pattern", "_sliding_window_pattern", maximum=_MAX_LAYERS)
        return tuple((index + 1) % every != 0 for index in range(layers))
    if architecture.windows == "late":
        first = fields.number("max_window_layers", default=layers, minimum=0)
        late = fields.flag("use_sliding_window")
        return tuple(late and index >= first for index in range(layers))
    return (architecture.windows == "all",) * layers
