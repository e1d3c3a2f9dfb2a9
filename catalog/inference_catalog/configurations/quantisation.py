"""Sizes of the weights of a checkpoint, from its quantisation settings."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_catalog.configurations.text_shape import TextShape
from inference_catalog.configurations.weight_schemes import (
    MXFP4,
    PLAIN,
    WeightScheme,
    compressed_scheme,
    fp8_scheme,
    modelopt_scheme,
    packed_scheme,
)
from inference_contracts.records import dataclass

# Lists the weight matrices of a model, with the names that quantisation settings use.


@dataclass(frozen=True, slots=True)
class WeightModule:
    """A weight matrix of a layer."""

    name: str
    """Name in the checkpoint, such as ``model.layers.0.self_attn.q_proj``."""
    parameters: int
    """Its parameters, of all experts together for the matrix of experts."""
    is_expert: bool = False
    """Whether it belongs to routed experts."""


@dataclass(frozen=True, slots=True)
class WeightModules:
    """The parameters of a language model."""

    matrices: tuple[WeightModule, ...]
    """The projections of attention and feed-forward layers. Checkpoints may quantise them."""
    other_parameters: int
    """Embeddings, norms, routers and biases, which stay in 16 bits."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.other_parameters + sum(each.parameters for each in self.matrices)

    @property
    def expert_parameters(self) -> int:
        """Parameters of routed experts."""
        return sum(each.parameters for each in self.matrices if each.is_expert)


def language_modules(shape: TextShape, architecture: Architecture) -> WeightModules:
    """List the parameters that an engine loads, without layers for multi-token prediction."""
    embeddings = shape.vocabulary_size * shape.hidden_size * (1 if shape.tied else 2)
    others = embeddings + (2 * shape.layers + 1) * shape.hidden_size
    matrices: list[WeightModule] = []
    for index in range(shape.layers):
        matrices += _layer(shape, architecture, index, index)
        others += _plain(shape, architecture, index)
    return WeightModules(tuple(matrices), others)


def prediction_modules(shape: TextShape, architecture: Architecture) -> WeightModules:
    """List the parameters of the layers for multi-token prediction, which share both embeddings.

    Each is a layer like the last one, behind a projection of two hidden vectors to one (DeepSeek-V3,
    arXiv:2412.19437, section 2.2).
    """
    matrices: list[WeightModule] = []
    others = 0
    for added in range(shape.predicted_layers):
        matrices += _layer(shape, architecture, shape.layers - 1, shape.layers + added)
        others += _plain(shape, architecture, shape.layers - 1)
        others += 2 * shape.hidden_size * shape.hidden_size + 5 * shape.hidden_size
    return WeightModules(tuple(matrices), others)


def _layer(shape: TextShape, architecture: Architecture, like: int, index: int) -> Iterator[WeightModule]:
    """Yield the matrices of layer `index`, which is built like layer `like`."""
    prefix = f"model.layers.{index}"
    attention = _latent_attention(shape) if shape.latent else _grouped_attention(shape)
    for name, parameters in attention:
        yield WeightModule(f"{prefix}.self_attn.{name}", parameters)
    if shape.indexer and shape.latent and shape.indexer.layers[like]:
        size = shape.indexer.heads * shape.indexer.head_size
        query = (shape.latent.query_rank or shape.hidden_size) * size
        yield WeightModule(f"{prefix}.self_attn.indexer.wq_b", query)
        yield WeightModule(f"{prefix}.self_attn.indexer.wk", shape.hidden_size * shape.indexer.head_size)
    experts, width = shape.experts, shape.hidden_size
    if experts is None or not experts.layers[like]:
        yield from _feed_forward(f"{prefix}.mlp", width * shape.dense_width)
        return
    path = f"{prefix}.{architecture.feed_forward}"
    names = ("w1", "w3", "w2") if architecture.feed_forward == "block_sparse_moe" else None
    yield from _feed_forward(
        f"{path}.experts.0", experts.count * width * experts.width, names=names, is_expert=True
    )
    if experts.shared_width:
        yield from _feed_forward(f"{path}.shared_experts", width * experts.shared_width)


def _feed_forward(
    path: str, parameters: int, *, names: tuple[str, ...] | None = None, is_expert: bool = False
) -> Iterator[WeightModule]:
    for name in names or ("gate_proj", "up_proj", "down_proj"):
        yield WeightModule(f"{path}.{name}", parameters, is_expert)


def _grouped_attention(shape: TextShape) -> Iterator[tuple[str, int]]:
    query = shape.hidden_size * shape.attention_heads * shape.head_size
    key = shape.hidden_size * shape.kv_heads * shape.head_size
    yield from (("q_proj", query), ("k_proj", key), ("v_proj", key), ("o_proj", query))


def _latent_attention(shape: TextShape) -> Iterator[tuple[str, int]]:
    """Yield the projections of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434)."""
    latent, heads, hidden = shape.latent, shape.attention_heads, shape.hidden_size
    if latent is None:
        return
    query_size = heads * (latent.plain_size + latent.rope_size)
    if latent.query_rank:
        yield "q_a_proj", hidden * latent.query_rank
        yield "q_b_proj", latent.query_rank * query_size
    else:
        yield "q_proj", hidden * query_size
    yield "kv_a_proj_with_mqa", hidden * (latent.latent_rank + latent.rope_size)
    yield "kv_b_proj", latent.latent_rank * heads * (latent.plain_size + latent.value_size)
    yield "o_proj", heads * latent.value_size * hidden


def _plain(shape: TextShape, architecture: Architecture, like: int) -> int:
    """Return the biases and the router of a layer."""
    count = 0
    if shape.has_bias and shape.latent is None:
        count += (shape.attention_heads + 2 * shape.kv_heads) * shape.head_size
        count += shape.hidden_size if architecture.bias == "qkvo" else 0
    if shape.indexer and shape.indexer.layers[like]:
        count += shape.hidden_size * shape.indexer.heads
    if shape.experts and shape.experts.layers[like]:
        count += shape.experts.count * shape.hidden_size
        if architecture.expert_bias:
            count += shape.experts.count * (2 * shape.experts.width + shape.hidden_size)
    return count


_REGULAR = "re:"
_MAX_PATTERN = 300
_MAX_EXPRESSIONS = 3000
_MAX_REPETITIONS = 5
#: With repeated groups or many repetitions, matching could take very long.
_REPEATED_GROUP = re.compile(r"\)[+*{]")


class ModulePatterns:
    """Patterns of module names: a part of the path, ``*`` for any text, or ``re:`` and an expression.

    Parameters
    ----------
    patterns
        The patterns.
    fields
        Receives a problem if a pattern cannot be used.
    name
        Field of the patterns, for the problem.
    """

    def __init__(self, patterns: Iterable[str], fields: ConfigFields, name: str) -> None:
        self._paths: set[str] = set()
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            if len(pattern) > _MAX_PATTERN:
                fields.wrong(name, f"patterns of at most {_MAX_PATTERN} characters")
                return
            self._add(pattern, fields, name)
        if len(self._expressions) > _MAX_EXPRESSIONS:
            fields.wrong(name, f"at most {_MAX_EXPRESSIONS} patterns with wildcards")
            self._expressions = []

    def match(self, name: str) -> bool:
        """Whether a pattern names the module, a module that contains it, or the last parts of its path."""
        parts = name.split(".")
        ends = range(1, len(parts) + 1)
        if any(".".join(parts[start:end]) in self._paths for end in ends for start in range(end)):
            return True
        return any(each.match(name) for each in self._expressions)

    def _add(self, pattern: str, fields: ConfigFields, name: str) -> None:
        if pattern.startswith(_REGULAR):
            expression = pattern.removeprefix(_REGULAR)
            if _REPEATED_GROUP.search(expression) or _repetitions(expression) > _MAX_REPETITIONS:
                fields.wrong(name, "expressions without repeated groups and with few repetitions")
                return
            try:
                self._expressions.append(re.compile(_without_wrapper(expression)))
            except re.error as error:
                fields.wrong(name, f"valid regular expressions after 're:' ({pattern!r}: {error})")
        elif _repetitions(pattern) > _MAX_REPETITIONS:
            fields.wrong(name, f"patterns with at most {_MAX_REPETITIONS} wildcards")
        elif "*" in pattern or "?" in pattern:
            plain = _without_wrapper(pattern)
            self._expressions.append(re.compile(fnmatch.translate(plain)))
            self._expressions.append(re.compile(fnmatch.translate(f"{plain}.*")))
        else:
            self._paths.add(_without_wrapper(pattern))


def _repetitions(pattern: str) -> int:
    return sum(map(pattern.count, "*+{"))


def _without_wrapper(pattern: str) -> str:
    """Remove the part of a path that models with images put before the language model's own names."""
    for wrapper in ("model.language_model.", "language_model.model.", "language_model."):
        if pattern.startswith(wrapper):
            return ("" if wrapper == "language_model." else "model.") + pattern.removeprefix(wrapper)
    return pattern


_PLAIN_BYTES = 2
_IGNORED_FIELDS = ("ignored_layers", "modules_to_not_convert", "ignore", "exclude_modules")

SchemeOf = Callable[[WeightModule], WeightScheme]


@dataclass(frozen=True, slots=True)
class WeightSizes:
    """Sizes of a model's weights in bytes, and their type."""

    scheme: WeightScheme
    """Scheme of most of the quantised weights."""
    total: int
    """Bytes of all weights of the language model."""
    experts: int
    """Bytes of routed experts."""


def weight_sizes(modules: WeightModules, scheme_of: SchemeOf) -> WeightSizes:
    """Add up the weights of a model."""
    total, experts = float(_PLAIN_BYTES * modules.other_parameters), 0.0
    parameters: dict[WeightScheme, int] = {}
    for module in modules.matrices:
        scheme = scheme_of(module)
        size = module.parameters * scheme.bytes_per_weight
        total += size
        experts += size if module.is_expert else 0
        parameters[scheme] = parameters.get(scheme, 0) + module.parameters
    quantised = {scheme: count for scheme, count in parameters.items() if scheme is not PLAIN}
    maximum = max(quantised, key=lambda scheme: quantised[scheme], default=PLAIN)
    return WeightSizes(maximum, round(total), round(experts))


def read_scheme(whole: ConfigFields, exported: ConfigFields | None) -> SchemeOf:
    """Return the scheme of each module of a checkpoint.

    Parameters
    ----------
    whole
        The ``config.json``.
    exported
        ModelOpt's ``hf_quant_config.json`` beside it; None without one.
    """
    settings = _settings(whole)
    if settings is None and exported is not None:
        return _modelopt(exported.section("quantization") or exported)
    if settings is None:
        return _always(PLAIN)
    method = _method(settings)
    if not isinstance(method, str) or method not in _METHODS:
        known = ", ".join(_METHODS)
        settings.wrong("quant_method", f"one of {known}; the size of others is not counted here")
        return _always(PLAIN)
    return _METHODS[method](settings)


def quantisation_method(whole: ConfigFields, exported: ConfigFields | None) -> str:
    """Return the tool or method that quantised a checkpoint, such as ``awq``; empty if it names none.

    Parameters
    ----------
    whole
        The ``config.json``.
    exported
        ModelOpt's ``hf_quant_config.json`` beside it; None without one.
    """
    settings = _settings(whole)
    method = _method(settings) if settings else ("modelopt" if exported else None)
    # ModelOpt's name for files with weights in 4 bits; its other files have `modelopt`.
    return "modelopt" if method == "modelopt_fp4" else str(method or "")


def _settings(whole: ConfigFields) -> ConfigFields | None:
    text = whole.section("text_config")
    return whole.section("quantization_config") or (text and text.section("quantization_config"))


def _method(settings: ConfigFields) -> object:
    return settings.value("quant_method") or ("modelopt" if settings.has("quant_algo") else None)


def _always(scheme: WeightScheme) -> SchemeOf:
    return lambda module: scheme  # noqa: ARG005 -- every module has it


def _experts_in_mxfp4(settings: ConfigFields) -> SchemeOf:
    ignored = _ignored(settings)
    return _except(ignored, lambda module: MXFP4 if module.is_expert else PLAIN)


def _fp8(settings: ConfigFields) -> SchemeOf:
    return _except(_ignored(settings), _always(fp8_scheme(settings)))


def _awq(settings: ConfigFields) -> SchemeOf:
    scheme = packed_scheme(settings, has_zero_points=settings.flag("zero_point", default=True))
    return _except(_ignored(settings), _always(scheme))


def _gptq(settings: ConfigFields) -> SchemeOf:
    """Return the scheme of GPTQ, which stores zero points in any case."""
    if settings.value("dynamic"):
        settings.wrong("dynamic", "left out: settings per module are not counted here")
    return _except(_ignored(settings), _always(packed_scheme(settings, has_zero_points=True)))


def _compressed(settings: ConfigFields) -> SchemeOf:
    """Return the schemes of compressed-tensors: groups of modules, by class or name."""
    groups = settings.section("config_groups")
    if settings.value("format") == "marlin-24" or settings.has("sparsity_config"):
        sparsity = settings.section("sparsity_config")
        if sparsity is None or sparsity.value("format") not in (None, "dense"):
            settings.report("sparse weights are not counted here")
    chosen: list[tuple[ModulePatterns, WeightScheme]] = []
    default = PLAIN
    for name in groups.value_names() if groups else ():
        group = groups.section(name) if groups else None
        weights = group.section("weights") if group else None
        if group is None or weights is None:
            continue
        scheme = compressed_scheme(weights)
        targets = group.items("targets", str) or ["Linear"]
        if "Linear" in targets:
            default = scheme
        chosen.append(
            (ModulePatterns([each for each in targets if each != "Linear"], group, "targets"), scheme)
        )
    if groups is None or (default is PLAIN and not chosen):
        settings.report("config_groups: is missing; it says how the weights are stored")

    def scheme_of(module: WeightModule) -> WeightScheme:
        return next((scheme for patterns, scheme in chosen if patterns.match(module.name)), default)

    return _except(_ignored(settings), scheme_of)


def _modelopt(settings: ConfigFields) -> SchemeOf:
    """Return the schemes of ModelOpt: one for all layers, or one per layer."""
    layers = settings.section("quantized_layers")
    if layers is None:
        scheme = modelopt_scheme(settings, "quant_algo")
        return _except(_ignored(settings), _always(scheme))
    by_scheme: dict[WeightScheme, list[str]] = {}
    for name in layers.value_names():
        layer = layers.section(name)
        if layer is not None:
            by_scheme.setdefault(modelopt_scheme(layer, "quant_algo"), []).append(name)
    patterns = [(ModulePatterns(names, layers, "names"), scheme) for scheme, names in by_scheme.items()]

    def scheme_of(module: WeightModule) -> WeightScheme:
        return next((scheme for names, scheme in patterns if names.match(module.name)), PLAIN)

    return _except(_ignored(settings), scheme_of)


def _ignored(settings: ConfigFields) -> ModulePatterns:
    """Return the modules that stay in 16 bits. The name of the list depends on the tool."""
    name = next((each for each in _IGNORED_FIELDS if settings.has(each)), _IGNORED_FIELDS[0])
    return ModulePatterns(settings.items(name, str), settings, name)


def _except(ignored: ModulePatterns, scheme_of: SchemeOf) -> SchemeOf:
    return lambda module: PLAIN if ignored.match(module.name) else scheme_of(module)


_METHODS: Mapping[str, Callable[[ConfigFields], SchemeOf]] = MappingProxyType(
    {
        "awq": _awq,
        "compressed-tensors": _compressed,
        "fp8": _fp8,
        "gptq": _gptq,
        "modelopt": _modelopt,
        "modelopt_fp4": _modelopt,
        "mxfp4": _experts_in_mxfp4,
    }
)
