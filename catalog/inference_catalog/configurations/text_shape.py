"""Reads the layers of a language model from its ``config.json``."""

from __future__ import annotations

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.feed_forward import (
    Experts,
    FeedForward,
    feed_forward_part,
    read_feed_forward,
)
from inference_catalog.configurations.layer_kinds import (
    LAYER_TYPES,
    MAX_LAYERS,
    Kinds,
    letter_kinds,
    read_kinds,
)
from inference_catalog.configurations.layer_parts import LayerPart, joined, matrices
from inference_catalog.configurations.mixers import mixer_part
from inference_catalog.configurations.mixers.grouped import Heads, read_heads
from inference_catalog.configurations.mixers.latent import (
    LatentAttention,
    read_latent,
)
from inference_contracts.records import dataclass

_STATE_FIELDS = (
    "linear_num_key_heads",
    "linear_attn_config",
    "mamba_num_heads",
    "mamba_d_state",
    "ssm_state_size",
)
"""Fields of models whose layers keep a state."""
_PATTERN_FIELDS = {
    "hybrid_override_pattern": "alone",
    "hybrid_layer_pattern": "flags",
    "block_configs": "blocks",
}
"""Fields that say what the layers are, and the pattern of the classes that are counted with them."""


@dataclass(frozen=True, slots=True)
class TextShape:
    """The layers of a language model, in its own words."""

    hidden_size: int
    vocabulary_size: int
    heads: Heads
    """Of its layers with a window if some have one; channels of the state if it has no attention."""
    dense_width: int
    experts: Experts | None
    context_length: int
    parts: tuple[LayerPart, ...]
    """What each layer holds."""
    predicted: tuple[LayerPart, ...]
    """What each layer for multi-token prediction holds."""
    tables: int
    """Parameters of embeddings and the last norm, and of the classifier of a model that has one."""
    output: int
    """Parameters of the output layer; 0 if it is the embedding, or if there is none."""
    looked_up: int = 0
    """Those of `tables` that belong to several tokens together. A token reads a few rows of them."""

    @property
    def layers(self) -> int:
        """Number of layers, without those for multi-token prediction."""
        return len(self.parts)


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
    _refuse_others(fields, architecture)
    named = fields.value("layers_block_type")
    listed = len(named) if isinstance(named, list) and named else None
    layers = fields.number("num_hidden_layers", default=listed, maximum=MAX_LAYERS)
    if fields.value("H_cycles") is not None:  # two stacks, each of which a token passes several times
        layers = 2 * fields.number("num_layers_per_stack", "num_hidden_layers", maximum=MAX_LAYERS)
    kinds = _without_windows(fields, read_kinds(fields, architecture, layers))
    hidden_size = fields.number("hidden_size")
    networks = read_feed_forward(fields, architecture, tuple(kind for _, kind in kinds), hidden_size)
    read = _Layers(fields, architecture, networks, kinds)
    windows = sum(kind == "window" for kind, _ in kinds)
    latent = read_latent(fields) if architecture.attention == "mla" else None
    names = ["num_nextn_predict_layers", "mtp_num_hidden_layers"]
    names += [architecture.prediction_field] if architecture.prediction_field else []
    predicted = fields.number(*names, default=0, minimum=0, maximum=MAX_LAYERS, null=True)
    return TextShape(
        hidden_size=hidden_size,
        vocabulary_size=fields.number("vocab_size"),
        heads=_heads(fields, architecture, latent, windows=windows, kinds=kinds),
        dense_width=networks.dense_width,
        experts=networks.experts,
        context_length=fields.number("max_position_embeddings"),
        parts=tuple(read.layer(index) for index in range(layers)),
        predicted=tuple(read.prediction(layers + added) for added in range(predicted)),
        tables=_tables(fields, architecture, layers),
        output=0
        if architecture.head != "output" or _tied(fields, whole)
        else fields.number("vocab_size") * hidden_size,
        looked_up=_gram_tables(fields),
    )


class _Layers:
    """The layers of a model, each read by its number."""

    def __init__(
        self,
        fields: ConfigFields,
        architecture: Architecture,
        networks: FeedForward,
        kinds: tuple[Kinds, ...],
    ) -> None:
        self._fields, self._architecture = fields, architecture
        self._networks, self._kinds = networks, kinds
        self._inputs = _inputs_of_layers(fields)

    def layer(self, index: int) -> LayerPart:
        """Return what a layer holds."""
        return self._part(index, min(index, len(self._kinds) - 1), self._kinds[index])

    def prediction(self, index: int) -> LayerPart:
        """Return a layer for multi-token prediction.

        It is a layer like the last one, that of further ``layer_types``, or those of
        ``mtp_layers_block_type``, behind a projection of two hidden vectors to one (DeepSeek-V3,
        arXiv:2412.19437, section 2.2). Where a file lists the numbers of layers with experts, it has none.
        """
        names = ("mtp_layers_block_type", "mtp_hybrid_override_pattern")
        given = next((each for each in names if self._fields.has(each)), names[0])
        kinds = letter_kinds(self._fields, given) or (self._listed(index),)
        hidden = self._networks.hidden_size
        like = max((place for place, each in enumerate(self._kinds) if each[1] == "experts"), default=-1)
        like = len(self._kinds) - 1 if like < 0 else like
        experts = self._networks.experts
        if experts and self._fields.has("moe_layers_enum"):
            like = next((place for place, has in enumerate(experts.layers) if not has), like)
        parts = [self._part(index, like, each) for each in kinds]
        # The norms of the layer are among the five.
        further = 2 * hidden * hidden + (5 - 2 * len(parts)) * hidden
        return joined([*parts, LayerPart((), further, further)])

    def _listed(self, index: int) -> Kinds:
        types = self._fields.items("layer_types", str)
        return LAYER_TYPES.get(types[index], self._kinds[-1]) if index < len(types) else self._kinds[-1]

    def _part(self, index: int, like: int, kinds: Kinds) -> LayerPart:
        fields, architecture = self._fields, self._architecture
        kind, network = kinds
        shared = fields.number("num_kv_shared_layers", default=0, minimum=0, null=True)
        is_double = bool(shared) and index >= len(self._kinds) - shared and fields.flag("use_double_wide_mlp")
        norms = architecture.attention_modules * (1 if network == "none" or kind == "none" else 2)
        hidden = self._networks.hidden_size
        own = (2 if architecture.encoder else 1) * norms * hidden
        size = hidden * self._inputs
        gates = matrices("", per_layer_input_gate=size, per_layer_projection=size)
        return joined(
            [
                mixer_part(fields, architecture, kind, index),
                feed_forward_part(self._networks, architecture, network, like, double=is_double),
                LayerPart(gates, own, own),
                _mixing(fields, hidden),
                _updates(fields, hidden),
            ]
        )


def _mixing(fields: ConfigFields, hidden: int) -> LayerPart:
    """Return what a layer holds to mix several hidden vectors, before attention and before its network.

    The parameters are in 32 bits, so each counts twice (``models/deepseek_v4`` and ``models/hy_v4`` of vLLM
    0.31.0; the latter has no matrix for mixing the vectors with each other).
    """
    streams = fields.number("hc_mult", default=0, minimum=0, maximum=MAX_LAYERS)
    own = 2 if fields.has("hc_magnitude") else 2 + streams
    plain = 2 * 2 * own * streams * streams * hidden
    return LayerPart((), plain, plain)


def _updates(fields: ConfigFields, hidden: int) -> LayerPart:
    """Return what a layer holds to update several hidden vectors in turn (``gemma3n.py`` of vLLM 0.31.0)."""
    rank = fields.number("laurel_rank", default=0, minimum=0)
    inputs = fields.number("altup_num_inputs", default=0, minimum=0, maximum=MAX_LAYERS)
    # A router, its norm, coefficients, and a scale in 32 bits.
    plain = inputs * hidden + inputs**2 + inputs**3 + 3 * hidden if inputs else 0
    found = matrices("laurel", linear_left=hidden * rank, linear_right=hidden * rank)
    return LayerPart(found, plain, plain)


def _refuse_others(fields: ConfigFields, architecture: Architecture) -> None:
    """Add a problem for each field that a class has whose layers are counted in another way."""
    names = [] if architecture.state else list(_STATE_FIELDS)
    names += [name for name, pattern in _PATTERN_FIELDS.items() if architecture.pattern != pattern]
    names += [] if architecture.attention == "packed" else ["compress_ratios"]
    for name in names:
        if fields.has(name) and fields.value(name) not in ([], {}, False, 0):
            fields.problems.append(
                f"{name}: layers with this field are not counted for {architecture.name}; write the class "
                "that has them into 'architectures' of a copy of the file"
            )


def _without_windows(fields: ConfigFields, kinds: tuple[Kinds, ...]) -> tuple[Kinds, ...]:
    """Return the kinds, without windows if the file sets their length to null.

    Chunks whose length the file leaves out are as long as windows, and a layer reads the chunk before its own
    too, for which vLLM keeps what a window keeps (``rnj1.py`` of 0.31.0).
    """
    if fields.value("attention_chunk_size") is None and fields.has("sliding_window"):
        kinds = tuple(("window" if kind == "chunk" else kind, network) for kind, network in kinds)
    if not any(kind == "window" for kind, _ in kinds):
        return kinds
    if fields.number("sliding_window", default=0, null=True):
        return kinds
    return tuple(("full" if kind == "window" else kind, network) for kind, network in kinds)


def _heads(
    fields: ConfigFields,
    architecture: Architecture,
    latent: LatentAttention | None,
    *,
    windows: int,
    kinds: tuple[Kinds, ...],
) -> Heads:
    """Return the heads that stand for a model."""
    if all(kind in ("state", "none") for kind, _ in kinds):
        channels = fields.number("hidden_size") * fields.number("expand", "mamba_expand", default=2)
        count = fields.number("num_heads", default=channels)
        return Heads(count, count, fields.number("head_dim", default=1))
    if latent:
        queries = fields.number("num_attention_heads")
        return Heads(queries, fields.number("num_key_value_heads", default=queries), latent.value_size)
    return read_heads(fields, architecture, "window" if windows else "full")


def _tables(fields: ConfigFields, architecture: Architecture, layers: int) -> int:
    """Return the parameters of embeddings, of the last norm, and of a classifier."""
    hidden, vocabulary = fields.number("hidden_size"), fields.number("vocab_size")
    found = vocabulary * hidden + hidden
    if architecture.head == "pooled":
        found += 2 * (hidden * hidden + hidden)  # in 32 bits
    if architecture.positions:
        found += fields.number("max_position_embeddings") * hidden
    found += _gram_tables(fields)
    inputs = _inputs_of_layers(fields)
    if inputs:
        rows = fields.number("vocab_size_per_layer_input", default=vocabulary)
        found += (rows + hidden) * layers * inputs
    # A projection of each further hidden vector, before the layers and behind them.
    found += 2 * max(0, fields.number("altup_num_inputs", default=1) - 1) * hidden**2
    return found


def _gram_tables(fields: ConfigFields) -> int:
    """Return the parameters of embeddings of the last tokens (``longcat_flash_ngram.py`` of vLLM 0.31.0)."""
    ratio = fields.number("ngram_vocab_size_ratio", default=0, minimum=0, null=True)
    if not ratio:
        return 0
    hidden, vocabulary = fields.number("hidden_size"), fields.number("vocab_size")
    tables = fields.number("emb_split_num") * max(1, fields.number("emb_neighbor_num") - 1)
    rows = tables * ratio * vocabulary + tables * tables
    return rows * (hidden // tables) + hidden * hidden


def _inputs_of_layers(fields: ConfigFields) -> int:
    """Return the size of the vector that each layer has per token of the vocabulary (Gemma 4)."""
    return fields.number("hidden_size_per_layer_input", default=0, minimum=0, null=True)


def _tied(fields: ConfigFields, whole: ConfigFields) -> bool:
    """Whether the embedding is also the output layer. Either object may say so."""
    return (fields if fields.has("tie_word_embeddings") else whole).flag(
        "tie_word_embeddings", default=bool(fields.value("tie_word_embeddings"))
    )
