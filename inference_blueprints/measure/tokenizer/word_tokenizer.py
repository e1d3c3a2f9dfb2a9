"""A byte-level BPE tokenizer whose merges build exactly the words of `vocabulary`.

Its files have the format of Hugging Face ``tokenizers`` (docs: huggingface.co/docs/tokenizers, "Components").
Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_blueprints.measure.tokenizer.vocabulary import one_token_words, syllables

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
