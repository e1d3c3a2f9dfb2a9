"""Estimates the tokens of a request from its bytes, because no tokenizer fits every model."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from batch.contracts.generated_image import image_count, image_tokens
from inference_contracts.batch_limits import BYTES_PER_TOKEN

# Fields of a body that engines put into the prompt, or that are as long as one.
_PROMPTED = ("tools", "functions", "response_format", "structured_outputs", "documents", "suffix")
# Tokens for the role and the delimiters of a message.
_TOKENS_PER_MESSAGE = 4


def text_tokens(text: str) -> int:
    """Return the estimated tokens of a text, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


# The most tokens of a text, for any vocabulary: no model's own is here.
#
# A run of ASCII letters is a word, and all other characters count by their script. The figures are above
# what Qwen's vocabulary (151,643 entries) has for the messages of Django 6 in 19 languages, for prose, source
# code, JSON with numbers, and base64, in pieces of 4,000 characters. Of 3,993 prompts that fit 101,376 of its
# tokens, drawn from lengths with a mean of 20,000 in English, Chinese, Russian and Hindi, 24 were refused
# (0.6 %), and none passed that does not fit (2026-11-29).
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_TOKENS_PER_LETTER = 0.29
#: Letters per run of base64 and of hashes, below those of any language, and how much more tokens they have.
_LETTERS_OF_NOISE, _NOISE = 3, 1.5
#: First character of each range, and tokens per character.
_MOST_PER_CHARACTER: Final = (
    *((0x00, 1.0), (0x20, 0.03), (0x21, 0.8), (0x30, 1.05), (0x3A, 0.8), (0x7F, 1.0), (0xC0, 1.1)),
    # Phonetic signs, Greek, Cyrillic, Armenian, Hebrew, Arabic, Syriac, Devanagari, Bengali, Tamil, Telugu.
    *((0x250, 1.8), (0x370, 1.08), (0x400, 0.6), (0x530, 2.2), (0x590, 1.15), (0x600, 0.85), (0x700, 1.9)),
    *((0x900, 1.25), (0x980, 1.45), (0xB80, 1.6), (0xC00, 2.2)),
    # Thai, Lao, Georgian, Hangul, Latin, Greek, punctuation, symbols, radicals, Kana, Bopomofo, Han, others.
    *((0xE00, 0.95), (0xE80, 2.2), (0x10A0, 2.2), (0x1100, 2.2), (0x1E00, 1.1), (0x1F00, 2.0), (0x2000, 1.0)),
    *((0x2100, 1.5), (0x2E80, 1.0), (0x3040, 1.0), (0x3100, 1.3), (0x4E00, 1.12), (0xA000, 2.5)),
    *((0xAC00, 1.0), (0xD7B0, 2.5), (0xFF00, 1.0), (0x10000, 3.5)),
)
_STARTS: Final = [start for start, _ in _MOST_PER_CHARACTER]
#: Tokens that the template of a chat adds, such as a system message of its own.
_TEMPLATE_TOKENS: Final = 64


def most_text_tokens(text: str) -> int:
    """Return the most tokens that a text has, by its words and scripts."""
    runs = Counter(map(len, _WORD.findall(text)))
    words = sum(count * max(1.0, _TOKENS_PER_LETTER * length) for length, count in runs.items())
    if sum(length * count for length, count in runs.items()) < _LETTERS_OF_NOISE * sum(runs.values()):
        words *= _NOISE
    return math.ceil(words + sum(count * _most_of(each) for each, count in Counter(text).items()))


@cache
def _most_of(character: str) -> float:
    """Return the most tokens of a character; 0 for letters, which count as words."""
    if character.isascii() and character.isalpha():
        return 0.0
    return _MOST_PER_CHARACTER[bisect_right(_STARTS, ord(character)) - 1][1]


def most_input_tokens(body: Mapping[str, Any], *, image_tokens: int, enough: int) -> int:
    """Return the most input tokens of a request, with what a template adds.

    image_tokens: Tokens of an image.
    enough: If the request cannot have more, any number up to this one is returned. Vocabularies have a token
        for each byte, so the bytes tell it fast.
    """
    in_bytes = input_tokens(body, image_tokens=image_tokens, count=_bytes) + _TEMPLATE_TOKENS
    if in_bytes <= enough:
        return in_bytes
    return input_tokens(body, image_tokens=image_tokens, count=most_text_tokens) + _TEMPLATE_TOKENS


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def input_tokens(
    body: Mapping[str, Any], *, image_tokens: int, count: Callable[[str], int] = text_tokens
) -> int:
    """Return the estimated input tokens of a request.

    body: The body of a chat completion, a completion or an embedding.
    image_tokens: Tokens of an image.
    count: Counts the tokens of a text.
    """
    tokens = _TOKENS_PER_MESSAGE * len(_messages(body)) + _given_tokens(body)
    for kind, value in parts(body):
        tokens += image_tokens if kind == "image" else count(value)
    extras = [body[field] for field in _PROMPTED if body.get(field)]
    for message in _messages(body):
        if isinstance(message, dict):
            extras += [value for key, value in message.items() if key not in ("role", "content") and value]
    return tokens + sum(count(json.dumps(each, ensure_ascii=False)) for each in extras)


def _given_tokens(body: Mapping[str, Any]) -> int:
    """Return the number of token identifiers of a prompt or input that is given as such."""
    return sum(
        1 if isinstance(each, int) else len(each)
        for field in ("prompt", "input")
        for each in _listed(body.get(field))
        if isinstance(each, int | list)
    )


def _listed(value: object) -> Sequence[Any]:
    """Return a list; empty for any other type."""
    return value if isinstance(value, list) else ()


def parts(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Iterate over the texts and image addresses of a request, as ``(kind, value)``.

    body: The body of a chat completion, a completion or an embedding. Parts of any other form are skipped.
    """
    for field in ("prompt", "input"):
        value = body.get(field)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, str):
                yield "text", each
    for message in _messages(body):
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else (content,):
            yield from _part(part)


def _messages(body: Mapping[str, Any]) -> Sequence[Any]:
    """Return the messages of a body; empty if the field has another type."""
    messages = body.get("messages")
    return messages if isinstance(messages, list) else ()


def _part(part: object) -> Iterator[tuple[str, str]]:
    """Iterate over the contents of one part of a message."""
    if isinstance(part, str):
        yield "text", part
    elif isinstance(part, dict):
        image = part.get("image_url")
        address = image.get("url") if isinstance(image, dict) else image
        if isinstance(address, str):
            yield "image", address
        if isinstance(part.get("text"), str):
            yield "text", part["text"]


def output_tokens(body: Mapping[str, Any], *, default: int) -> int:
    """Return the most output tokens of a request.

    default: Tokens of an answer without a limit.
    """
    if "messages" not in body and "prompt" not in body:  # An embedding has no output tokens.
        return 0
    limits = (body.get("max_completion_tokens"), body.get("max_tokens"), default)
    limit = next(each for each in limits if each is not None)
    # The engine generates `best_of` answers and returns `n` of them.
    answers = max(int(body.get(field) or 1) for field in ("n", "best_of"))
    # A list of texts or of lists of tokens is a list of prompts. A list of numbers is one prompt.
    prompts = sum(1 for each in _listed(body.get("prompt")) if not isinstance(each, int))
    return int(limit) * answers * max(prompts, 1)


def image_request_tokens(body: Mapping[str, Any]) -> tuple[int, int]:
    """Return the tokens of the prompt of a request for images, and those that its images count as.

    body: The body of a request for images.
    """
    return text_tokens(body["prompt"]), image_count(body) * image_tokens(body.get("size"))
