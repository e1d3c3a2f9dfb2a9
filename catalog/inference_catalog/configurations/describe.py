"""Turns a published ``config.json`` into an entry of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inference_catalog.cached_layers import as_data
from inference_catalog.catalogue import shipped
from inference_catalog.configurations.audio_shape import audio_parameters
from inference_catalog.configurations.cache_shape import cache_settings, cached_layers
from inference_catalog.configurations.config_fields import (
    Architecture,
    ConfigFields,
    ModelConfigError,
    UncountedClassError,
)
from inference_catalog.configurations.draft_shape import describe_draft, draft_class
from inference_catalog.configurations.layer_types import layer_types
from inference_catalog.configurations.quantisation import (
    cached_type,
    quantisation_method,
    read_scheme,
    weight_sizes,
)
from inference_catalog.configurations.text_shape import TextShape, read_text_shape
from inference_catalog.configurations.vision_shape import read_vision_shape
from inference_catalog.configurations.weight_modules import (
    WeightModules,
    language_modules,
    layer_modules,
    prediction_modules,
)
from inference_catalog.configurations.weight_schemes import PLAIN

_BILLION = 1e9
_PLAIN_BYTES = 2
#: What a class with a language model of another class says itself.
_OF_THE_WHOLE = (
    "name",
    "source",
    "vision_defaults",
    "projector",
    "further_projection",
    "whole_vision",
    "whole_projector",
    "gated_vision",
    "splits_by_image",
    "scales_to_pixels",
)


def describe(configuration: object, exported: object = None) -> dict[str, Any]:
    """Turn a ``config.json`` into the numbers of a catalogue entry.

    Parameters
    ----------
    configuration
        Content of the file.
    exported
        Content of ModelOpt's ``hf_quant_config.json`` beside it; None without one.

    Returns
    -------
    dict
        Fields of ``catalog.Model`` (``draft`` only of drafts), except its name and facts that a
        configuration does not hold.

    Raises
    ------
    ModelConfigError
        If the file is not a configuration, names a class that is not counted, or has missing or wrong fields.
        The message has one line per problem.
    """
    content = _mapping(configuration, "config.json")
    of_draft = draft_class(content, shipped().draft_classes)
    if of_draft:
        return describe_draft(ConfigFields(content), of_draft, shipped().architectures)
    architecture = _with_language(_architecture(configuration), content)
    own_defaults = architecture.defaults
    architecture = replace(architecture, defaults=shipped().config_defaults.of(architecture, content))
    whole = ConfigFields(
        content,
        # Those of the type are the language model's, which may be in a section.
        defaults=own_defaults
        if architecture.names.get("text_config", "text_config") in content
        else architecture.defaults,
        names=architecture.names,
    )
    of_export = (
        None
        if exported is None
        else ConfigFields(
            _mapping(exported, "hf_quant_config.json"), "hf_quant_config.json: ", whole.problems
        )
    )
    shape = read_text_shape(whole, architecture)
    vision = read_vision_shape(whole, architecture, shape.hidden_size)
    of_audio = audio_parameters(whole, architecture, shape.hidden_size)
    scheme_of = read_scheme(whole, of_export)
    whole.check()
    cached = cached_layers(shape)
    modules = language_modules(shape, architecture)
    predicted = prediction_modules(shape, architecture)
    sizes, predicted_sizes = weight_sizes(modules, scheme_of), weight_sizes(predicted, scheme_of)
    encoders = (vision.parameters if vision else 0) + of_audio
    of_encoders = _PLAIN_BYTES * ((vision.whole_parameters if vision else 0) + of_audio)
    total = modules.total + encoders
    cache = cache_settings(architecture, cached_type(whole, of_export), shape.heads.size)
    least = architecture.least_expert_part
    return {
        "architecture": architecture.name,
        "parameters_billion": round(total / _BILLION, 2),
        "active_parameters_billion": round((total - _idle(modules, shape)) / _BILLION, 2),
        "layers": shape.layers,
        "hidden_size": shape.hidden_size,
        "vocabulary_size": shape.vocabulary_size,
        "attention_heads": shape.heads.queries,
        "kv_heads": shape.heads.keys,
        "head_size": shape.heads.size,
        "attention": "gqa" if architecture.attention in ("gqa", "shared") else "mla",
        "cached_layers": as_data(cached),
        **layer_types(shape, layer_modules(shape, architecture), cached, scheme_of),
        "output_bytes": sizes.output,
        **({"cache": cache} if cache else {}),
        "experts": shape.experts.count if shape.experts else 0,
        "feed_forward_size": shape.experts.width if shape.experts else shape.dense_width,
        "weight_type": sizes.scheme.weight_type,
        "weight_block": sizes.scheme.block,
        "quantisation_method": quantisation_method(whole, of_export) if sizes.scheme is not PLAIN else "",
        "weight_bytes": sizes.total + _PLAIN_BYTES * encoders,
        "expert_weight_bytes": sizes.experts,
        **({"shared_expert_bytes": sizes.shared} if sizes.shared else {}),
        "less_divided": [
            {
                "parts": each.parts,
                "matrix_bytes": each.matrix_bytes,
                "other_bytes": each.other_bytes + of_encoders,
            }
            if each.parts == 1
            else {"parts": each.parts, "matrix_bytes": each.matrix_bytes}
            for each in sizes.less_divided
        ],
        **({"least_expert_part": least} if least else {}),
        "matrix_parameters": sum(each.parameters for each in modules.matrices),
        "predicted_layers": len(shape.predicted),
        "prediction_weight_bytes": predicted_sizes.total,
        "context_length": shape.context_length,
        "vision": vision.entry if vision else None,
    }


def _idle(modules: WeightModules, shape: TextShape) -> int:
    """Return the parameters of experts and of tables that one token does not use."""
    if shape.experts is None:
        return shape.looked_up
    routed = modules.expert_parameters
    return shape.looked_up + routed - shape.experts.chosen * routed // shape.experts.count


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelConfigError(f"{name}: got {type(value).__name__}, must be a JSON object")
    return value


def _architecture(configuration: object) -> Architecture:
    """Return the class that a configuration names."""
    named = _mapping(configuration, "config.json").get("architectures")
    if not isinstance(named, list) or len(named) != 1 or not isinstance(named[0], str):
        shown = "nothing" if named is None else repr(named)[:60]
        raise ModelConfigError(
            f"architectures: got {shown}, must be a list of one class; give the model's own, such as "
            '["Qwen3ForCausalLM"]'
        )
    name = named[0]
    known = shipped().architectures
    if name in known:
        return known[name]
    raise UncountedClassError(
        f"architectures: got {name[:60]!r}, which is not counted here; "
        f"{shipped().registered_classes.known_to(name)}"
    )


def _with_language(architecture: Architecture, content: Mapping[str, Any]) -> Architecture:
    """Return a class with what the class of its language model adds, where a section of the file names it."""
    if not architecture.language:
        return architecture
    section = ConfigFields(content, names=architecture.names).section("text_config")
    named, model_type = (section.value(name) if section else None for name in ("architectures", "model_type"))
    name = named[0] if isinstance(named, list) and len(named) == 1 and isinstance(named[0], str) else ""
    known = shipped().architectures
    by_type = {each.model_type: each for each in known.values() if each.model_type}
    found = known.get(name) if name else by_type.get(str(model_type))
    if found is None:
        place, shown = architecture.names.get("text_config", "text_config"), repr(name or model_type)[:60]
        message = f"{place}: got a language model of the class {shown}, which is not counted here"
        raise UncountedClassError(message)
    return replace(
        found,
        **{name: getattr(architecture, name) for name in _OF_THE_WHOLE},
        defaults={**found.defaults, **architecture.defaults},
        names={**found.names, **architecture.names},
    )
