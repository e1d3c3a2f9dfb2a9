"""Entries of models next to a blueprint: a published configuration, and facts that it does not hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_blueprints.spec.formats import HUGGING_FACE_REPOSITORY
from inference_blueprints.spec.invalid_values import InvalidValue
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.config_fields import ModelConfigError
from inference_contracts.errors import Problem, UserError
from inference_contracts.units import GIB

#: Folder of entries, next to the blueprint.
MODELS_FOLDER = "models"
_MAX_BYTES = 8 * 1024**2
#: Largest size of weights that is taken for one.
_MOST_GIB = 100_000
#: Name and type of the fields of a file.
_FIELDS: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "configuration": (dict,),
    "exportedQuantization": (dict, type(None)),
    "answerFormat": (str, type(None)),
    "gated": (bool,),
    "licence": (str,),
    "source": (str,),
    "layers": (list, type(None)),
    "weightsGib": (int, float, type(None)),
}


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises UserError if the file cannot be read, is too large, or is not JSON."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"{path}: is larger than {_MAX_BYTES // 1024**2} MiB, which is the maximum")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}:{error.colno}: is not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not usable JSON: {str(error)[:100]}") from error


def is_repository(name: str) -> bool:
    """Whether a text names a repository; names of dots alone would be folders."""
    return re.fullmatch(HUGGING_FACE_REPOSITORY, name) is not None and all(
        part.strip(".") for part in name.split("/")
    )


def entry_of(document: Any, path: Path) -> catalog.Model:
    """Return the entry that a file holds.

    document: Content of the file.
    path: The file, for messages.
    Raises ModelConfigError if a field is missing or wrong, or the configuration cannot be counted.
    """
    if not isinstance(document, dict):
        raise ModelConfigError("must be a JSON object; make it again with `blueprints models add`")
    wrong = [name for name, kinds in _FIELDS.items() if not isinstance(document.get(name), kinds)]
    unknown = sorted(map(str, document.keys() - _FIELDS.keys()))
    if wrong or unknown:
        raise ModelConfigError(
            f"missing or wrong fields: {', '.join(wrong) or 'none'}; unknown fields: "
            f"{', '.join(unknown) or 'none'}; make the file again with `blueprints models add`"
        )
    if not is_repository(document["name"]):
        raise ModelConfigError(
            f"name: got {document['name'][:80]!r}, must be a repository such as acme/Acme-7B"
        )
    formats = catalog.answer_formats()
    if document["answerFormat"] is not None and document["answerFormat"] not in formats:
        raise ModelConfigError(
            f"answerFormat: got {document['answerFormat']!r}, allowed are {', '.join(formats)}"
        )
    facts = {
        "answer_format": document["answerFormat"],
        "gated": document["gated"],
        "licence": document["licence"],
        "source": document["source"],
    }
    return model_entry(document["name"], _described(document) | facts, path)


def _described(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of an entry: counted, or by the layers and weights that the file gives."""
    layers, weights = document.get("layers"), document.get("weightsGib")
    if layers is None and weights is None:
        from inference_catalog.configurations.describe import describe

        return describe(document["configuration"], document["exportedQuantization"])
    from inference_catalog.cached_layers import LayersError, read_layers
    from inference_catalog.configurations.given_model import describe_given

    size = weights if isinstance(weights, int | float) and not isinstance(weights, bool) else 0
    if layers is None or not 0 < size <= _MOST_GIB:
        raise ModelConfigError(
            f"layers and weightsGib: got {'no' if layers is None else 'some'} layers and {weights!r} GiB, "
            f"must be both a list of layers and a number above 0, at most {_MOST_GIB}, or neither; "
            "`blueprints models add` reads the size from model.safetensors.index.json beside the "
            "config.json, or takes --weights-gib"
        )
    try:
        found = read_layers(layers, camel=True)
    except LayersError as error:
        raise ModelConfigError(str(error)) from error
    return describe_given(document["configuration"], found, round(size * GIB))


def read_models(folder: Path) -> tuple[Mapping[str, catalog.Model], list[Problem]]:
    """Return the entries in a folder by name, and a problem for each file that cannot be used."""
    models: dict[str, catalog.Model] = {}
    problems = []
    for path in sorted(folder.glob("*.json")):
        try:
            entry = entry_of(read_json(path), path)
        except ModelConfigError as error:
            problems += [Problem(str(path), 0, 0, "", line) for line in str(error).splitlines()]
        except UserError as error:
            problems.append(Problem(str(path), 0, 0, "", str(error).removeprefix(f"{path}: ")))
        else:
            models[entry.name] = entry
    return models, problems


def with_models(blueprint: Blueprint, added: Mapping[str, catalog.Model]) -> Blueprint:
    """Return a blueprint whose weights know further entries. It may have invalid values.

    added: Entry by name.
    """
    if not added or isinstance(blueprint, InvalidValue):
        return blueprint
    spec = blueprint.spec
    if isinstance(spec, InvalidValue) or isinstance(spec.models, InvalidValue):
        return blueprint
    models = [
        model
        if isinstance(model, InvalidValue) or isinstance(model.weights, InvalidValue)
        else model.model_copy(update={"weights": model.weights.with_entries(added)})
        for model in spec.models
    ]
    return blueprint.model_copy(update={"spec": spec.model_copy(update={"models": models})})
