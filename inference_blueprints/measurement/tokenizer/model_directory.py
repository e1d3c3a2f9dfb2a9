"""A model directory without weights: what a frontend and a simulated engine read of a model.

Nothing is downloaded: the shape comes from the catalogue, the tokenizer is written here. It is a byte-level
BPE in the format of Hugging Face ``tokenizers`` (docs: huggingface.co/docs/tokenizers, "Components"), whose
merges build exactly the words of `vocabulary`.
"""

from __future__ import annotations

import json
from pathlib import Path

from inference_blueprints.catalog import Model
from inference_blueprints.measurement.tokenizer.vocabulary import one_token_words, syllables

_SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_SPACE = "Ġ"  # a space in byte-level BPE
_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model_directory(model: Model, directory: Path) -> Path:
    """Write tokenizer and configuration of a model.

    Parameters
    ----------
    model
        The catalogue's description of the model.
    directory
        Folder for the files. It is created if needed.

    Returns
    -------
    Path
        The directory.
    """
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary()
    files = {
        "tokenizer.json": _tokenizer(vocabulary),
        "tokenizer_config.json": _tokenizer_configuration(vocabulary),
        "config.json": _configuration(model, vocabulary),
        "generation_config.json": {"eos_token_id": [vocabulary["<|im_end|>"], vocabulary["<|endoftext|>"]]},
    }
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content))
    return directory


def _byte_alphabet() -> list[str]:
    """Return the printable character of each byte in byte-level BPE, in the order of the bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    stand_ins = {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [stand_ins.get(byte, chr(byte)) for byte in range(256)]


def _merges() -> list[list[str]]:
    """Return the merges in their order: letters to syllables, syllables to words, a space and a word."""
    beginnings, endings = syllables()
    letters = [[syllable[0], syllable[1]] for syllable in dict.fromkeys((*beginnings, *endings))]
    pairs = [[beginning, ending] for beginning in beginnings for ending in endings]
    return letters + pairs + [[_SPACE, word] for word in one_token_words()]


def _vocabulary() -> dict[str, int]:
    """Return id by token.

    The simulated engine answers with random ids between 1,000 and 2,000 (observed with Dynamo 1.6.1), so the
    words with a space before them come first: then its answers read as words.
    """
    spaced = [_SPACE + word for word in one_token_words()]
    parts = ["".join(pair) for pair in _merges() if pair[0] != _SPACE]
    tokens = (*_SPECIAL_TOKENS, *_byte_alphabet(), *spaced, *parts)
    return {token: index for index, token in enumerate(tokens)}


def _special_token(content: str) -> dict[str, object]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"content": content, **flags}


def _tokenizer(vocabulary: dict[str, int]) -> dict[str, object]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocabulary[token], **_special_token(token)} for token in _SPECIAL_TOKENS],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": _merges(),
        },
    }


def _tokenizer_configuration(vocabulary: dict[str, int]) -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "chat_template": _CHAT_TEMPLATE,
        "added_tokens_decoder": {str(vocabulary[token]): _special_token(token) for token in _SPECIAL_TOKENS},
    }


def _configuration(model: Model, vocabulary: dict[str, int]) -> dict[str, object]:
    return {
        "architectures": [model.architecture],
        "model_type": "simulated",
        "hidden_size": model.hidden_size,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.attention_heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_size,
        "max_position_embeddings": model.context_length,
        "vocab_size": len(vocabulary),
        "bos_token_id": vocabulary["<|endoftext|>"],
        "eos_token_id": vocabulary["<|im_end|>"],
    }
