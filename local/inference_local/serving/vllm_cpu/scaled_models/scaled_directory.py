"""The directories of scaled models and drafts, which vLLM loads with random weights.

A scaled model has the class, the kind of attention and the number of heads of the real one, so engines split
it over devices in the same way. It has few layers, small heads and few experts. A draft has one layer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inference_blueprints.measure.tokenizer import tokenizer_files, vocabulary
from inference_catalog import Model
from inference_catalog.model import DraftMethod
from inference_local.serving.vllm_cpu.scaled_models.tables import (
    chat_format,
    configuration,
    processor_files,
)

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
