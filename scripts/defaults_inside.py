"""Tells the defaults of the classes that read a ``config.json``, of vLLM's environment.

Runs with the Python of that environment, which does not have this library. `record_config_defaults.py` starts
it, writes ``{"fields": [...], "classes": [...]}`` to its input, and reads the answer from its output.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import sys
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def defaults(kind: type[Any], fields: list[str]) -> Json:
    """Return the defaults of a configuration class that are not null, by the names that are asked for.

    Those of the class alone: what it computes from other fields follows from the file.
    """
    found: Json = {}
    if dataclasses.is_dataclass(kind):
        for each in dataclasses.fields(kind):
            if each.default is not dataclasses.MISSING:
                found[each.name] = each.default
            elif each.default_factory is not dataclasses.MISSING:
                found[each.name] = each.default_factory()
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            found.setdefault(name, parameter.default)
    other_names = getattr(kind, "attribute_map", {})
    named = {name: found.get(other_names.get(name, name)) for name in fields}
    return {name: value for name, value in named.items() if isinstance(value, (bool, int, str, list))}


def text_type(kind: type[Any]) -> str:
    """Return the type that the language model of a file has unless the file says so; empty for none."""
    with contextlib.suppress(Exception):  # classes that need arguments
        whole = kind()
        text = whole.get_text_config()
        if text is not whole:
            return str(text.model_type)
    return ""


def types_of(classes: list[str]) -> set[str]:
    """Return the types of files that name one of the classes, as far as transformers knows it."""
    from transformers.models.auto import modeling_auto

    found = set()
    for name, mapping in vars(modeling_auto).items():
        if name.endswith("_MAPPING_NAMES") and isinstance(mapping, Mapping):
            for model_type, named in mapping.items():
                if not set(classes).isdisjoint([named] if isinstance(named, str) else named):
                    found.add(model_type)
    return found


def main() -> None:
    """Answer one question."""
    asked = json.load(sys.stdin)
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from vllm.transformers_utils.config import _CONFIG_REGISTRY

    def kind_of(model_type: str) -> type[Any] | None:
        known: Mapping[str, Any] = CONFIG_MAPPING
        found: type[Any] | None = None
        if model_type in _CONFIG_REGISTRY:  # vLLM's own classes come first
            found = _CONFIG_REGISTRY[model_type]
        elif model_type in known:
            found = known[model_type]
        return found

    kinds = {each: kind_of(each) for each in {*types_of(asked["classes"]), *_CONFIG_REGISTRY}}
    texts = {each: text_type(kind) for each, kind in kinds.items() if kind}
    kinds |= {each: kind_of(each) for each in texts.values()}
    json.dump(
        {
            "text_types": {name: text for name, text in sorted(texts.items()) if text},
            "types": {name: defaults(kind, asked["fields"]) for name, kind in sorted(kinds.items()) if kind},
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
