"""A model directory without weights: what a frontend and a simulated engine read of a model.

Nothing is downloaded: the shape comes from the catalogue, the tokenizer is written here.
"""

from __future__ import annotations

import json
from pathlib import Path

from inference_blueprints.measure.tokenizer.word_tokenizer import CHATML, tokenizer_files, vocabulary
from inference_catalog import Model


def write_model_directory(model: Model, directory: Path) -> Path:
    """Write tokenizer and configuration of a model.

    model: The catalogue's description of the model.
    directory: Folder for the files. It is created if needed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in {**tokenizer_files(CHATML), "config.json": _configuration(model)}.items():
        (directory / name).write_text(json.dumps(content))
    return directory


def _configuration(model: Model) -> dict[str, object]:
    ids = vocabulary(CHATML)
    return {
        "architectures": [model.architecture],
        "model_type": "simulated",
        "hidden_size": model.hidden_size,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.attention_heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_size,
        "max_position_embeddings": model.context_length,
        "vocab_size": len(ids),
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
    }
