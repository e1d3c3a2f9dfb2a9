"""Estimates the tokens of a request from its bytes, because no tokenizer fits every model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batch.contracts.generated_image import image_count, image_tokens
from inference_contracts.batch_limits import BYTES_PER_TOKEN

# Fields of a body that engines put into the prompt, or that are as long as one.
_PROMPTED = ("tools", "functions", "response_format", "structured_outputs", "documents", "suffix")
# Tokens for the role and the delimiters of a message.
_TOKENS_PER_MESSAGE = 4


def text_tokens(text: str) -> int:
    """Return the estimated tokens of a text, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def input_tokens(body: Mapping[str, Any], *, image_tokens: int) -> int:
    """Return the estimated input tokens of a request.

    body: The body of a chat completion, a completion or an embedding.
    image_tokens: Tokens of an image.
    """
    tokens = _TOKENS_PER_MESSAGE * len(_messages(body)) + _given_tokens(body)
    for kind, value in parts(body):
        tokens += image_tokens if kind == "image" else text_tokens(value)
    extras = [body[field] for field in _PROMPTED if body.get(field)]
    for message in _messages(body):
        if isinstance(message, dict):
            extras += [value for key, value in message.items() if key not in ("role", "content") and value]
    return tokens + sum(text_tokens(json.dumps(each, ensure_ascii=False)) for each in extras)


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
