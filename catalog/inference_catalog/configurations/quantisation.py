"""Sizes of the weights of a checkpoint, from its quantisation settings."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from inference_catalog.configurations.config_fields import ConfigFields
from inference_catalog.configurations.layer_parts import WeightModule
from inference_catalog.configurations.weight_modules import WeightModules
from inference_catalog.configurations.weight_schemes import (
    MXFP4,
    PLAIN,
    WeightScheme,
    compressed_scheme,
    fp8_scheme,
    modelopt_scheme,
    packed_scheme,
)
from inference_catalog.model import LessDivided
from inference_contracts.records import dataclass

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

#: ``model_type`` of the files of DeepSeek V4.
_DEEPSEEK_V4 = "deepseek_v4"

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
    shared: int
    """``Model.shared_expert_bytes``."""
    less_divided: tuple[LessDivided, ...]
    """What is divided into at most some number of parts."""
    output: int
    """Bytes of the output layer; 0 if it is the embedding."""


def weight_sizes(modules: WeightModules, scheme_of: SchemeOf) -> WeightSizes:
    """Add up the weights of a model."""
    total, experts, shared = float(_PLAIN_BYTES * modules.other_parameters), 0.0, 0.0
    parts: dict[int, float] = {1: 0.0}
    parameters: dict[WeightScheme, int] = {}
    for module in modules.matrices:
        scheme = scheme_of(module)
        size = module.parameters * scheme.bytes_per_weight
        total += size
        experts += size if module.is_expert else 0
        shared += size if module.is_shared and not module.parts else 0
        parts[module.parts] = parts.get(module.parts, 0.0) + size
        parameters[scheme] = parameters.get(scheme, 0) + module.parameters
    output = modules.output.parameters * scheme_of(modules.output).bytes_per_weight
    total += output
    quantised = {scheme: count for scheme, count in parameters.items() if scheme is not PLAIN}
    maximum = max(quantised, key=lambda scheme: quantised[scheme], default=PLAIN)
    whole = _PLAIN_BYTES * modules.whole_parameters
    less_divided = tuple(
        LessDivided(number, round(size), whole if number == 1 else 0)
        for number, size in sorted(parts.items())
        if number
    )
    return WeightSizes(maximum, round(total), round(experts), round(shared), less_divided, round(output))


def read_scheme(whole: ConfigFields, exported: ConfigFields | None) -> SchemeOf:
    """Return the scheme of each module of a checkpoint.

    Parameters
    ----------
    whole
        The ``config.json``.
    exported
        ModelOpt's ``hf_quant_config.json`` beside it; None without one.
    """
    found = _in_force(whole, exported)
    if found is None:
        return _always(PLAIN)
    settings, method = found
    if not isinstance(method, str) or method not in _METHODS:
        known = ", ".join(_METHODS)
        settings.wrong("quant_method", f"one of {known}; the size of others is not counted here")
        return _always(PLAIN)
    scheme_of = _METHODS[method](settings)
    return _of_experts(whole, settings, scheme_of) if method == "fp8" else scheme_of


def quantisation_method(whole: ConfigFields, exported: ConfigFields | None) -> str:
    """Return the tool or method that quantised a checkpoint, such as ``awq``; empty if it names none.

    Parameters
    ----------
    whole
        The ``config.json``.
    exported
        ModelOpt's ``hf_quant_config.json`` beside it; None without one.
    """
    settings, method = _in_force(whole, exported) or (None, None)
    if settings and settings.has("moe_quant_algo"):
        return "modelopt"  # it wrote the experts; `fp8` is the method of the other layers
    # ModelOpt's name for files with weights in 4 bits; its other files have `modelopt`.
    return "modelopt" if method == "modelopt_fp4" else str(method or "")


def cached_type(whole: ConfigFields, exported: ConfigFields | None) -> str:
    """Return the type of KV cache that a checkpoint sets, which engines take for ``auto``; empty if none.

    vLLM 0.31.0 reads it of ModelOpt's files only (``get_kv_cache_quant_algo_string`` in
    ``utils/torch_utils.py``), and SGLang 0.5.21 too (``kv_cache_quant_algo`` in
    ``mem_cache/kv_cache_dtype.py``).

    Parameters
    ----------
    whole
        The ``config.json``.
    exported
        ModelOpt's ``hf_quant_config.json`` beside it; None without one.
    """
    settings, method = _in_force(whole, exported) or (None, None)
    if settings is None or not str(method or "").startswith("modelopt"):
        return ""
    scheme, named = settings.value("kv_cache_scheme"), settings.value("kv_cache_quant_algo")
    is_fp8 = isinstance(scheme, Mapping) and scheme.get("num_bits") == _FP8_BITS
    return "fp8" if is_fp8 or (isinstance(named, str) and named.lower() == "fp8") else ""


_FP8_BITS = 8


def _in_force(whole: ConfigFields, exported: ConfigFields | None) -> tuple[ConfigFields, object] | None:
    """Return the settings that engines read, and their method; None if no weights are quantised.

    With settings in the ``config.json``, ModelOpt's export beside it is not read.
    """
    text = whole.section("text_config")
    settings = whole.section("quantization_config") or (text and text.section("quantization_config"))
    if settings:
        method = settings.value("quant_method")
        return settings, method or ("modelopt" if settings.has("quant_algo") else None)
    return (exported.section("quantization") or exported, "modelopt") if exported else None


def _always(scheme: WeightScheme) -> SchemeOf:
    return lambda module: PLAIN if module.is_output else scheme


def _experts_in_mxfp4(settings: ConfigFields) -> SchemeOf:
    ignored = _ignored(settings)
    return _except(ignored, lambda module: MXFP4 if module.is_expert else PLAIN)


def _fp8(settings: ConfigFields) -> SchemeOf:
    ignored = _ignored(settings, ("ignored_layers", "modules_to_not_convert"))
    return _except(ignored, _always(fp8_scheme(settings)))


def _of_experts(whole: ConfigFields, settings: ConfigFields, scheme_of: SchemeOf) -> SchemeOf:
    """Return the schemes of a checkpoint in FP8 whose experts have fewer bits (DeepSeek V4).

    ``models/deepseek_v4/quant_config.py`` of vLLM 0.31.0 reads ``moe_quant_algo`` beside the method, and
    ``expert_dtype`` in the file, and both only of files of its own type. Other types of file, such as the
    ``deepseek_ref`` of conversions to FP8, have experts in FP8.
    """
    if whole.value("model_type") not in (None, _DEEPSEEK_V4):
        return scheme_of
    if settings.has("moe_quant_algo"):
        own = modelopt_scheme(settings, "moe_quant_algo")
    elif whole.value("expert_dtype") == "fp4":
        own = MXFP4
    else:
        return scheme_of
    return lambda module: own if module.is_expert else scheme_of(module)


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
        found = (scheme for patterns, scheme in chosen if patterns.match(module.name))
        return next(found, PLAIN if module.is_output else default)

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


def _ignored(settings: ConfigFields, names: tuple[str, ...] = _IGNORED_FIELDS) -> ModulePatterns:
    """Return the modules that stay in 16 bits. The name of the list depends on the tool."""
    name = next((each for each in names if settings.has(each)), names[0])
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
