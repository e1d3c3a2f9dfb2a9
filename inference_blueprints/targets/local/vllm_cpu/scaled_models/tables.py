"""The data of scaled models, as types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from inference_blueprints.catalog import Model
from inference_blueprints.errors import UserError
from inference_blueprints.measurement.tokenizer.word_tokenizer import ChatFormat

DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True, slots=True)
class ScaledArchitecture:
    """What a model class adds to the fields that every scaled model has.

    Parameters
    ----------
    fields
        Fields of ``config.json``, of the language model if it is alone.
    text
        Fields of the language model, if ``config.json`` has them in a section of their own.
    without
        Fields of every language model that this class does not take.
    chat_format
        Format of the conversation, for models whose catalogue entry names none.
    """

    fields: Mapping[str, Any]
    text: Mapping[str, Any] | None = None
    without: tuple[str, ...] = ()
    chat_format: str | None = None
    files: Mapping[str, Any] = field(default_factory=dict)


def scaled_architecture(model: Model) -> ScaledArchitecture:
    """Return the entry of a model's class.

    Raises
    ------
    UserError
        If the class has none.
    """
    entries = document("architectures")["architectures"]
    if model.architecture not in entries:
        known = ", ".join(entries)
        raise UserError(
            f"{model.name}: got architecture {model.architecture}, scaled models exist for {known}. "
            "Use simulated engines for this model"
        )
    return ScaledArchitecture(**entries[model.architecture])


def chat_format(model: Model) -> ChatFormat:
    """Return the format of a model's conversations."""
    entry = dict(document("chat_formats")["formats"][_format_name(model)])
    switches = {"thinks": False, **entry.pop("switches", {})}
    settings = [f"{{%- set {name} = {json.dumps(value)} -%}}" for name, value in switches.items()]
    files = [DATA / "templates" / f"{name}.jinja" for name in ("parts", entry.pop("template"))]
    template = "".join([*settings, *(file.read_text("utf-8") for file in files)])
    tuples: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return ChatFormat(chat_template=template, **tuples)


@cache
def document(name: str) -> Mapping[str, Any]:
    """Return the content of a data file."""
    content: Mapping[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return content


def _format_name(model: Model) -> str:
    return model.answer_format or scaled_architecture(model).chat_format or "chatml"
