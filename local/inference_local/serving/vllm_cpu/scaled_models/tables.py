"""The data of scaled models, as types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inference_blueprints.measure.tokenizer import ChatFormat, tokenizer_files, vocabulary
from inference_catalog import Model
from inference_catalog.model import DraftMethod
from inference_contracts.errors import UserError

DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True, slots=True)
class ScaledArchitecture:
    """What a model class adds to the fields that every language model has."""

    fields: Mapping[str, Any]
    """Fields of ``config.json``; those of the language model too, if it is alone."""
    sections: tuple[str, ...] = ()
    """Groups of such fields that several classes share."""
    text: Mapping[str, Any] | None = None
    """Fields of the language model, if ``config.json`` has them in ``text_config``."""
    text_sections: tuple[str, ...] = ()
    """Groups of such fields."""
    without: tuple[str, ...] = ()
    """Fields of every language model that this class does not take."""
    processor: str | None = None
    """Files of the part that reads images. None for models that read only text."""
    chat_format: str = "chatml"
    """Format of the conversation, for models whose catalogue entry names none."""


def scaled_architecture(model: Model) -> ScaledArchitecture:
    """Return the entry of a model's class. Raises UserError if the class has none."""
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
    formats, scaled = document("chat_formats"), scaled_architecture(model)
    own = formats["formats"][model.answer_format or scaled.chat_format]
    base = formats["bases"].get(own.get("base"), {})
    entry: dict[str, Any] = {name: value for name, value in {**base, **own}.items() if name != "base"}
    entry["settings"] = {**formats["settings"], **base.get("settings", {}), **own.get("settings", {})}
    settings = [
        f"{{%- set {name} = {json.dumps(value, ensure_ascii=False)} -%}}"
        for name, value in entry.pop("settings").items()
    ]
    files = [DATA / "templates" / f"{name}.jinja" for name in ("parts", entry.pop("template"))]
    template = "".join([*settings, *(file.read_text("utf-8") for file in files)])
    marks: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return ChatFormat(chat_template=template, **marks)


def configuration(model: Model) -> dict[str, Any]:
    """Return the fields of ``config.json`` that depend on the model's class, with their ``$`` values."""
    shared, entry = document("architectures"), scaled_architecture(model)
    groups = shared["sections"]
    language = {name: value for name, value in shared["text"].items() if name not in entry.without}
    own = _merged([*(groups[name] for name in entry.sections), entry.fields])
    if entry.text is None:
        return {**language, **own}
    text = _merged([language, *(groups[name] for name in entry.text_sections), entry.text])
    return {**own, "text_config": text}


def processor_files(model: Model) -> Mapping[str, Any]:
    """Return the content of the files of the part that reads images, by file name."""
    name = scaled_architecture(model).processor
    return {} if name is None else dict(document("architectures")["processors"][name])


@cache
def document(name: str) -> Mapping[str, Any]:
    """Return the content of a data file."""
    content: Mapping[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return content


def _merged(groups: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for group in groups for name, value in group.items()}


def refusal(model: Model) -> str | None:
    """Return why vLLM on a CPU cannot run a scaled model of this architecture.

    model: The catalogue's description of the real model.
    Returns: The reason, without the model's name. None if it runs.
    """
    refused = document("refused")["architectures"]
    if model.architecture in refused:
        return str(refused[model.architecture]["reason"])
    try:
        scaled_architecture(model)
    except UserError:
        return f"there is no scaled-down model of its architecture, {model.architecture}"
    return None


# The directories of scaled models and drafts, which vLLM loads with random weights.
#
# A scaled model has the class, the kind of attention and the number of heads of the real one, so engines
# split it over devices in the same way. It has few layers, small heads and few experts. A draft has one
# layer.

#: Width of a feed-forward layer on one device.
_DEVICE_WIDTH = 64


def write_scaled_model(model: Model, directory: Path, *, tensor_parallel_size: int) -> Path:
    """Write configuration and tokenizer of a scaled model, for ``--load-format dummy``.

    model: The catalogue's description of the real model.
    directory: Folder for the files. It is created if needed.
    tensor_parallel_size: Devices that will share each layer. Feed-forward layers are made wide enough for
        them.
    Raises UserError if there is no scaled model of this architecture.
    """
    chat = chat_format(model)
    ids = vocabulary(chat)
    own = configuration(model)
    tokens = {
        "bos_token_id": None if chat.begin_token is None else ids[chat.begin_token],
        "eos_token_id": [ids[token] for token in chat.end_tokens],
        "pad_token_id": ids[chat.pad_token],
    }
    own.get("text_config", own).update(tokens, vocab_size=len(ids))
    shape = {"architectures": [model.architecture], "dtype": "float32", **tokens, **own}
    filled = _filling(model, ids, _DEVICE_WIDTH * tensor_parallel_size)
    files = {**tokenizer_files(chat), **filled({"config.json": shape, **processor_files(model)})}
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content), encoding="utf-8")
    return directory


def _filling(model: Model, ids: dict[str, int], width: int) -> Callable[[Any], Any]:
    """Return a function that replaces ``$`` values by those of the model."""

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name = value.removeprefix("$")
        if name.startswith("token:"):
            return ids[name.removeprefix("token:")]
        return width if name == "width" else getattr(model, name)

    return filled


#: vLLM's class of each method (``model_executor/models/registry.py``, release 0.31.0).
_CLASSES: Mapping[DraftMethod, str] = {"eagle": "EagleLlamaForCausalLM", "eagle3": "LlamaForCausalLMEagle3"}


def write_scaled_draft(model_directory: Path, directory: Path, method: DraftMethod) -> None:
    """Write the configuration of a draft for a scaled model, for ``--load-format dummy``.

    model_directory: Folder of the scaled model. The draft has its width, its heads and its vocabulary.
    directory: Folder for the draft. It is created if needed.
    method: How the draft guesses.
    """
    config = json.loads((model_directory / "config.json").read_text(encoding="utf-8"))
    text = config.get("text_config", config)
    shape = {
        **text,
        "architectures": [_CLASSES[method]],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "draft_vocab_size": text["vocab_size"],
        # EAGLE-3 reads three hidden states. vLLM itself chooses layers that only deeper models have.
        "eagle_aux_hidden_state_layer_ids": list(range(text["num_hidden_layers"] + 1)),
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(shape), encoding="utf-8")
