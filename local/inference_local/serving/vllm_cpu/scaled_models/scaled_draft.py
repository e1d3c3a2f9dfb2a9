"""The directory of a scaled draft: a configuration of one layer, to which vLLM gives random weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from inference_catalog.draft import DraftMethod

#: vLLM's class of each method (``model_executor/models/registry.py``, release 0.31.0).
_CLASSES: Mapping[DraftMethod, str] = {"eagle": "EagleLlamaForCausalLM", "eagle3": "LlamaForCausalLMEagle3"}


def write_scaled_draft(model_directory: Path, directory: Path, method: DraftMethod) -> None:
    """Write the configuration of a draft for a scaled model, for ``--load-format dummy``.

    Parameters
    ----------
    model_directory
        Folder of the scaled model. The draft has its width, its heads and its vocabulary.
    directory
        Folder for the draft. It is created if needed.
    method
        How the draft guesses.
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
