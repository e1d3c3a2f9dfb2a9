"""Typed access to the fields of a ``config.json``, which may be broken in any way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

# Model classes whose parameters and KV cache can be counted.


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a model class adds to the fields of its ``config.json``."""

    name: str
    """The class in ``architectures``, such as ``Qwen3ForCausalLM``."""
    source: str
    """Source of these facts."""
    model_type: str = ""
    """``model_type`` of a section that describes a language model of this class without naming it; empty if
    sections are known to name it."""
    language: bool = False
    """Whether the section ``text_config`` is a configuration of its own, whose class says what the language
    model is (``init_vllm_registered_model`` in ``models/utils.py`` of vLLM 0.31.0)."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of the fields that a ``config.json`` may leave out, as in the class of its configuration."""
    vision_defaults: Mapping[str, Any] = field(default_factory=dict)
    """The same of the section ``vision_config``."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The family's own names of fields, by the name that others give them, such as ``n_embd`` for
    ``hidden_size``. A dot leads into a section."""
    width_factor: int = 0
    """Width of feed-forward modules as a multiple of ``hidden_size``, if the file does not give it; 0 if it
    must."""
    halved_width: bool = False
    """Whether the width in the file is that of two matrices together."""
    one_kv_head: str = ""
    """Field that is true if all heads share one KV head, unless ``new_decoder_architecture`` is true."""
    whole_keys: bool = False
    """Whether latent attention is only a form of its weights, and every head's keys and values are cached."""
    attention: Literal["gqa", "mla", "packed", "shared"] = "gqa"
    """``gqa``: keys and values per head; ``mla``: one latent vector per token; ``packed``: one latent vector
    per token in a window, and one for several older tokens (DeepSeek V4); ``shared``: keys and values per
    head, by blocks with a feed-forward network whose weights several layers share (Zamba 2)."""
    attention_inputs: int = 1
    """Size of the vectors that attention reads, as a multiple of ``hidden_size``."""
    attention_modules: int = 1
    """Attention modules of a layer, each with a feed-forward network without experts if layers have one."""
    state: Literal["", "convolution", "gatedDelta", "kimiDelta", "linear", "mamba", "mamba2"] = ""
    """What its layers without attention to tokens keep per request; empty if it has none of them."""
    bias: Literal["qkv", "qkvo"] = "qkvo"
    """Projections that have a bias if ``attention_bias`` is true."""
    pattern: Literal[
        "none",
        "all",
        "both",
        "pattern",
        "late",
        "interval",
        "indices",
        "groups",
        "period",
        "chunks",
        "local",
        "alone",
        "blocks",
        "hybrid",
        "listed",
        "flags",
        "state",
    ] = "none"
    """How the kinds of its layers follow from the file if it has no ``layer_types``. ``none``: all attend to
    every token; ``all``: all have the window ``sliding_window``; ``both``: all attend to every token and
    keep a state; ``pattern``: all except each ``sliding_window_pattern``-th; ``late``: those from
    ``max_window_layers`` on if ``use_sliding_window`` is true; ``interval``: all keep a state except each
    ``full_attention_interval``-th; ``indices``: by ``full_attn_idxs``; ``groups``: by ``layer_group_size``;
    ``period``: by ``attn_layer_period``; ``chunks``: all attend to a chunk except each
    ``no_rope_layer_interval``-th; ``local``: by ``local_layer_ids``; ``alone``: by
    ``hybrid_override_pattern``; ``blocks``: by ``block_configs``; ``hybrid``: by ``layers_block_type``;
    ``listed``: by ``linear_attn_config``; ``flags``: by ``hybrid_layer_pattern``;
    ``state``: all keep a state."""
    prefix: str = "model"
    """First part of the names of its weights in a checkpoint."""
    attention_path: str = "self_attn"
    """Name of the attention module in a layer."""
    state_path: str = ""
    """Name of the module that keeps a state."""
    output_gate: bool = False
    """Whether attention has a gate as wide as its queries, unless ``attn_output_gate`` says otherwise."""
    gate_field: str = ""
    """Field that says whether attention has a gate (``g_proj``): true, ``per-head`` or ``head_wise`` for a
    value per head, another text for one per value of a head."""
    feed_forward: str = "mlp"
    """Name of the feed-forward module in a layer of experts; empty if the experts stand in the layer."""
    dense_path: str = "mlp"
    """Name of the feed-forward module in a layer without experts."""
    dense_width: str = ""
    """Field of the width of that module, where a family has one of its own."""
    dense_beside_experts: bool = False
    """Whether layers of experts also have that module."""
    gated: bool = True
    """Whether feed-forward modules have three matrices; false for two."""
    shared_expert: str = "shared_experts"
    """Name of the shared expert in the feed-forward module; with a dot before it, in the layer."""
    shared_expert_gate: bool = False
    """Whether the shared expert has a gate of one value per token."""
    latent_names: tuple[str, str] | None = None
    """Names of the projections before and after experts that read smaller vectors, if checkpoints quantise
    them."""
    expert_bias: bool = False
    """Whether experts and their router have biases."""
    wide_router: bool = False
    """Whether the router is in 32 bits."""
    has_biases: bool = False
    """Whether every projection has a bias."""
    prediction_field: str = ""
    """Further field with the number of its layers for multi-token prediction."""
    prediction_path: str = ""
    """Path of the layers for multi-token prediction; empty if they follow the other layers."""
    whole_embedding: bool = False
    """Whether every device holds the embedding whole."""
    whole_layers: bool = False
    """Whether every device holds its layers whole, because the class that engines run has no plan for tensor
    parallelism."""
    encoder: bool = False
    """Whether it reads a whole text at once, caches nothing, and has no output layer."""
    positions: bool = False
    """Whether it has a table of ``max_position_embeddings`` vectors."""
    head: Literal["output", "pooled", "none"] = "output"
    """What follows the last layer: an output layer, a small classifier, or nothing."""
    tasks: tuple[str, ...] = ("generate", "embed")
    """Tasks of the blueprint for which it is."""
    projector: Literal[
        "merger",
        "mlp",
        "merged",
        "pixtral",
        "llama4",
        "minimax",
        "linear",
        "glm",
        "chatglm",
        "resampler",
        "ovis",
        "molmo",
    ] = "merger"
    """How image vectors become vectors of the language model."""
    whole_vision: Literal["", "all", "attention"] = ""
    """What every device holds whole of its vision part besides the patches' first layer and positions."""
    further_projection: bool = False
    """Whether one more matrix follows, from the size of image vectors to that of the language model's."""
    whole_projector: bool = False
    """Whether every device holds the projections behind the encoder whole."""
    gated_vision: bool = False
    """Whether the feed-forward modules of its vision part have three matrices."""
    conformer: bool = False
    """Whether ``audio_config`` describes a conformer. Every device holds it whole."""
    least_expert_part: int = 0
    """As in ``Model``; 0 if experts are not padded."""
    whole_with_ranks: Literal["none", "shared", "networks"] = "none"
    """What vLLM's class does not divide where ``weight_rules.holds_shared_experts_whole``: nothing, shared
    experts, or also networks without experts (``disable_tp=is_sequence_parallel`` in its file)."""
    states_per_request: int = 0
    page_alignment: int = 0
    """`states_per_request`, `page_alignment`: As in ``CacheSettings``; 0 for its defaults."""
    joined_kernels: bool = False
    """Whether vLLM joins two kernels on compute capability 10.x, because all tokens of an image see each
    other."""
    in_each_stage: Literal["ends", "embedding", "tables"] = "ends"
    """Tables that vLLM's class holds in each stage of a pipeline. ``ends``: none, the first stage has the
    embedding, and the last one the output layer; ``embedding``: the embedding; ``tables``: both."""
    splits_by_image: bool = False
    scales_to_pixels: bool = False
    """`splits_by_image`, `scales_to_pixels`: As in ``Vision``."""


@dataclass(frozen=True, slots=True)
class ConfigDefaults:
    """What engines take for fields that a ``config.json`` leaves out: the defaults of its ``model_type``."""

    types: Mapping[str, Mapping[str, Any]]
    """Defaults by ``model_type``."""
    text_types: Mapping[str, str]
    """``model_type`` of the language model in a file of another type, if its section has none."""

    def of(self, architecture: Architecture, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults of the language model's fields. Those that the class states come first.

        Engines read no file without ``model_type``, so it has only those of the class.

        Parameters
        ----------
        architecture
            The class that the file names.
        configuration
            Content of the file.
        """
        text = configuration.get(architecture.names.get("text_config", "text_config"))
        kind = configuration.get("model_type")
        if isinstance(text, Mapping):
            kind = text.get("model_type") or self.text_types.get(str(kind))
        found = self.types.get(str(kind), {})
        renamed = {name: found[own] for name, own in architecture.names.items() if own in found}
        return {**found, **renamed, **architecture.defaults}


#: Largest number of any field. Larger ones are mistakes, and would make counting slow.
_MAXIMUM = 100_000_000
_SHOWN = 60


class ModelConfigError(UserError):
    """A configuration cannot be counted. The message has one line per problem."""


class UncountedClassError(ModelConfigError):
    """A configuration names a class that is not counted. The user can give its layers and weights."""


class ConfigFields:
    """The fields of one JSON object, with the problems found while reading them.

    A field that is missing or wrong yields a placeholder, so that one reading finds every problem. Call
    `check` before the values are used.

    Parameters
    ----------
    values
        The JSON object.
    place
        Its path in the file, with a dot at its end; empty for the whole file.
    problems
        Problems found so far. Sections of one file share the list.
    defaults
        Values of fields that the file leaves out.
    names
        The file's own names of fields.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        place: str = "",
        problems: list[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        given = ((name, _at(values, other)) for name, other in (names or {}).items())
        self._values = {**values, **{name: value for name, value in given if value is not None}}
        self._names = names or {}
        self._place = place
        self.problems: list[str] = [] if problems is None else problems
        self._defaults = defaults or {}

    def check(self) -> None:
        """Raise a ModelConfigError if any field was missing or wrong."""
        if self.problems:
            raise ModelConfigError("\n".join(dict.fromkeys(self.problems)))

    def report(self, message: str) -> None:
        """Add a problem of this object as a whole."""
        self.problems.append(f"{self._place.rstrip('.')}: {message}" if self._place else message)

    def wrong(self, name: str, needed: str) -> None:
        """Add a problem: the value of a field is not what is needed."""
        got = repr(self._values.get(name))
        shown = got if len(got) <= _SHOWN else f"{got[:_SHOWN]}..."
        self.problems.append(f"{self._place}{self._names.get(name, name)}: got {shown}, must be {needed}")

    def has(self, name: str) -> bool:
        """Whether the file gives the field, and not as null."""
        return self._values.get(name) is not None

    def value_names(self) -> tuple[str, ...]:
        """Return the names of all fields that the file gives."""
        return tuple(self._values)

    def value(self, name: str) -> Any:
        """Return a value of any type; the default if the file does not give it."""
        return self._values[name] if self.has(name) else self._defaults.get(name)

    def number(
        self,
        *names: str,
        default: int | None = None,
        minimum: int = 1,
        maximum: int = _MAXIMUM,
        null: bool = False,
    ) -> int:
        """Return a whole number under the first of the names that is given.

        Parameters
        ----------
        names
            Names of the field in different families.
        default
            Value if no name is given. Without it, the field is required.
        minimum, maximum
            Smallest and largest value.
        null
            Whether a field with the value null means 0.
        """
        given = [each for each in names if self.has(each)]
        if null and not given and any(each in self._values for each in names):
            return 0
        name = next(iter(given or [each for each in names if self.value(each) is not None]), None)
        if name is None:
            if default is None:
                first, *others = (self._names.get(each, each) for each in names)
                more = "".join(f" or '{other}'" for other in others)
                self.problems.append(f"{self._place}{first}: is missing; give '{first}'{more}")
            return minimum if default is None else default
        value = self.value(name)
        if isinstance(value, list) and len(value) > 1 and value.count(value[0]) == len(value):
            value = value[0]  # a value per layer, all equal
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            self.wrong(name, f"a whole number from {minimum} to {maximum}")
            return minimum
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(name, "true or false")
        return bool(value)

    def items(self, name: str, kind: type) -> list[Any]:
        """Return a list of values of one type; empty if the field is not given."""
        value = self.value(name)
        if value is None:
            return []
        usable = isinstance(value, list) and all(
            isinstance(item, kind) and not isinstance(item, bool) for item in value
        )
        if not usable:
            self.wrong(name, f"a list of {'texts' if kind is str else 'whole numbers'}")
            return []
        return list(value)

    def section(self, name: str, defaults: Mapping[str, Any] | None = None) -> ConfigFields | None:
        """Return a nested object; None if the field is not given."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(name, "an object")
            return None
        return ConfigFields(value, f"{self._place}{name}.", self.problems, defaults, self._names)


def _at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path with dots; None if there is none."""
    found: Any = values
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
