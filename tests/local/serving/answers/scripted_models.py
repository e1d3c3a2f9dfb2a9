"""Models for the scripted engine: their directories, parsers and tokens."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import yaml

import inference_catalog as catalog
from inference_blueprints import resources
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.command_line import command_line
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.types import Blueprint
from tests.local.serving.answers.answer_families import Family

#: A model that answers with the request that its engine gets, as JSON.
ECHO = "echo"


def blueprint_of(family: Family) -> Blueprint:
    text = (resources.blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    document = copy.deepcopy(yaml.safe_load(text))
    model = document["spec"]["models"][0]
    # Without the events of a cache, which the scripted engine does not have.
    model |= {"weights": {"huggingFace": family.entry}, "routing": {"roundRobin": {}}}
    if family.parsers:
        model["parsers"] = dict(family.parsers)
    return Blueprint.model_validate(document)


def planned_arguments(family: Family) -> list[str]:
    """Return the parsers of the plan as Dynamo's own arguments, without the engine's."""
    [resolved] = resolve(blueprint_of(family), 0, 0)
    arguments = STACKS["dynamo"].parser_arguments(resolved)
    return list(command_line({name: value for name, value in arguments.items() if name.startswith("dyn-")}))


def scripted(name: str, family: Family, directory: Path) -> dict[str, Any]:
    """Write a model's directory with a tokenizer that has its marks, and return its entry of the script."""
    write_model_directory(catalog.model(family.entry), directory)
    path = directory / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    first = 1 + max(tokenizer["model"]["vocab"].values())
    marks = {mark: first + index for index, mark in enumerate(family.marks)}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    plain["special"] = family.special
    tokenizer["added_tokens"] += [{"id": each, "content": mark, **plain} for mark, each in marks.items()]
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    # The tokens after the special ones are the bytes, in their order.
    first_byte = tokenizer["model"]["vocab"]["<|im_end|>"] + 1
    parts = re.split("(" + "|".join(map(re.escape, marks)) + ")", family.text) if marks else [family.text]
    tokens: list[int] = []
    for part in parts:
        tokens += [marks[part]] if part in marks else [first_byte + byte for byte in part.encode()]
    return {
        "name": name,
        "directory": str(directory),
        "arguments": planned_arguments(family),
        "tokens": tokens,
    }


def echoing(family: Family, directory: Path) -> dict[str, Any]:
    """Return the entry of a model without parsers whose answers are the requests that its engine gets."""
    entry = scripted(ECHO, family, directory)
    tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    first_byte = tokenizer["model"]["vocab"]["<|im_end|>"] + 1
    return entry | {"arguments": [], "tokens": [], "first_byte": first_byte}
