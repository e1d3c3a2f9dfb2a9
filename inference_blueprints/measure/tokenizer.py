"""A tokenizer whose words are one token each, for prompts of an exact length."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path

from inference_catalog import Model
from inference_contracts.records import dataclass

# Words that are one token each, for text of an exact token length.
#
# A word is two syllables, such as ``bado``. The tokenizer of `model_directory` has every word as one token,
# with and without the space before it, and falls back to bytes for any other text.

_FIRST_CONSONANTS = "bdfgklmnpr"
_SECOND_CONSONANTS = "bdmnstvz"
_VOWELS = "aeiou"


def syllables() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the syllables that begin a word and those that end one."""
    beginnings = tuple(consonant + vowel for consonant in _FIRST_CONSONANTS for vowel in _VOWELS)
    endings = tuple(consonant + vowel for consonant in _SECOND_CONSONANTS for vowel in _VOWELS)
    return beginnings, endings


@cache
def one_token_words() -> Sequence[str]:
    """Return every word that is one token, always in the same order."""
    beginnings, endings = syllables()
    return tuple(beginning + ending for beginning in beginnings for ending in endings)


def random_text(tokens: int, seed: int) -> str:
    """Write text of an exact length in tokens.

    Each word has a space before it, so texts can be joined and their lengths add up.

    tokens: Length of the text.
    seed: Chooses the words: equal seeds give equal text, and a longer text begins with the shorter one.
    Returns: The text. Empty for no tokens.
    """
    chosen = random.Random(seed).choices(one_token_words(), k=tokens)  # noqa: S311 - no secret is made
    return "".join(f" {word}" for word in chosen)


# A byte-level BPE tokenizer whose merges build exactly the words of `vocabulary`.
#
# Its files have the format of Hugging Face ``tokenizers`` (docs: huggingface.co/docs/tokenizers,
# "Components"). Nothing is downloaded.

_SPACE = "Ġ"  # a space in byte-level BPE
_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The tokens with which a family of models marks the parts of a conversation."""

    special_tokens: tuple[str, ...]
    """Marks that decoders leave out of text."""
    end_tokens: tuple[str, ...]
    """Marks that end an answer, the usual one first."""
    pad_token: str
    """The mark that fills batches."""
    chat_template: str
    """The conversation as text, in Jinja."""
    plain_tokens: tuple[str, ...] = ()
    """Marks that stay in the text, for parsers to find."""
    begin_token: str | None = None
    """The mark that begins every conversation. None if the family has none."""
    named_tokens: Mapping[str, str] = field(default_factory=dict)
    """Other marks that programs look up by name, such as ``image_token``."""


CHATML = ChatFormat(
    special_tokens=("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    end_tokens=("<|im_end|>", "<|endoftext|>"),
    pad_token="<|endoftext|>",  # noqa: S106 - not a password
    chat_template=_CHAT_TEMPLATE,
)


def vocabulary(chat: ChatFormat) -> dict[str, int]:
    """Return id by token.

    The simulated engine answers with random ids between 1,000 and 2,000 (observed with Dynamo 1.6.1), so the
    words with a space before them come first: then its answers read as words.

    chat: The marks, which get the first ids.
    """
    spaced = [_SPACE + word for word in one_token_words()]
    parts = ["".join(pair) for pair in _merges() if pair[0] != _SPACE]
    tokens = (*chat.special_tokens, *chat.plain_tokens, *_byte_alphabet(), *spaced, *parts)
    return {token: index for index, token in enumerate(tokens)}


def tokenizer_files(chat: ChatFormat) -> dict[str, object]:
    """Return the content of each JSON file of the tokenizer, by file name.

    chat: The marks and the chat template.
    """
    ids = vocabulary(chat)
    marks = {mark: _mark(mark, special=True) for mark in chat.special_tokens}
    marks |= {mark: _mark(mark, special=False) for mark in chat.plain_tokens}
    return {
        "tokenizer.json": _tokenizer(ids, marks),
        "tokenizer_config.json": _configuration(chat, ids, marks),
        "generation_config.json": {"eos_token_id": [ids[token] for token in chat.end_tokens]},
    }


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


def _mark(content: str, *, special: bool) -> dict[str, object]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return {"content": content, **flags}


def _tokenizer(ids: dict[str, int], marks: dict[str, dict[str, object]]) -> dict[str, object]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], **mark} for token, mark in marks.items()],
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
            "vocab": ids,
            "merges": _merges(),
        },
    }


def _configuration(
    chat: ChatFormat, ids: dict[str, int], marks: dict[str, dict[str, object]]
) -> dict[str, object]:
    begin = {} if chat.begin_token is None else {"bos_token": chat.begin_token}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **begin,
        **chat.named_tokens,
        "eos_token": chat.end_tokens[0],
        "pad_token": chat.pad_token,
        "chat_template": chat.chat_template,
        "added_tokens_decoder": {str(ids[token]): mark for token, mark in marks.items()},
    }


# A model directory without weights: what a frontend and a simulated engine read of a model.
#
# Nothing is downloaded: the shape comes from the catalogue, the tokenizer is written here.


def write_model_directory(model: Model, directory: Path) -> Path:
    """Write tokenizer and configuration of a model.

    model: The catalogue's description of the model.
    directory: Folder for the files. It is created if needed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in {**tokenizer_files(CHATML), "config.json": _model_configuration(model)}.items():
        (directory / name).write_text(json.dumps(content))
    return directory


def _model_configuration(model: Model) -> dict[str, object]:
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
