"""The request that Envoy asks about: what its headers say, without the body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from front_door.refusals import DoorRefusal
from inference_contracts import door_headers
from inference_contracts.request_headers import SESSION_HEADER

#: What Envoy writes for a field that the body does not have, or that is null.
_ABSENT: Final = frozenset({"", "-", "null"})
_MODEL: Final = door_headers.MODEL.encode()
_MAX_TOKENS: Final = door_headers.MAX_TOKENS.encode()
_CHOICES: Final = door_headers.CHOICES.encode()
_BYTES: Final = door_headers.BYTES.encode()
_STORED: Final = door_headers.STORED.encode()
_IMAGES: Final = door_headers.IMAGES.encode()
_MEDIA_BYTES: Final = door_headers.MEDIA_BYTES.encode()
_TOKEN: Final = door_headers.TOKEN.encode()
_PROJECT: Final = door_headers.CALLERS_PROJECT.encode()
#: By what a conversation is known, the best first.
_CONVERSATION: Final = tuple(
    name.encode() for name in (SESSION_HEADER.lower(), door_headers.CACHE_KEY, door_headers.USER)
)
_PROJECT_FORM: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_USER: Final = door_headers.USER.encode()
#: Characters of a user that are recorded.
_LONGEST_USER: Final = 128
_LONGEST_NUMBER: Final = 12
#: Largest number of answers: of `n`, which OpenAI bounds by 128
#: (https://platform.openai.com/docs/api-reference/chat/create), times the prompts of a body.
MOST_CHOICES: Final = 100_000


class RefusedError(Exception):
    """The request is refused."""

    def __init__(self, refusal: DoorRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """A request that wants an answer of a model."""

    path: str
    model: str
    bytes: int
    """Length of the body."""
    output_tokens: int | None
    """Largest number of tokens of one choice. None if the request states none, 0 if it may bound nothing."""
    choices: int
    """Answers, or images, that it wants."""
    images: int
    """Images, films and sounds of the prompt."""
    media_bytes: int
    """Length of their contents, which `bytes` does not count."""
    is_stored: bool
    """Whether only the engine knows the length of the prompt, such as of a conversation it has stored."""
    conversation: str
    """What its conversation is known by. Empty if nothing says it."""
    project: str | None
    """Project that the caller names."""
    user: str | None
    """End user that the caller names, in printable characters."""


def read_request(path: str, headers: Mapping[bytes, bytes]) -> AskedRequest:
    """Read what Envoy tells of a request.

    headers: By name in lower case.
    Raises RefusedError if a field is missing or out of range.
    """
    model = _text(headers, _MODEL)
    if model is None:
        raise RefusedError(
            DoorRefusal(
                *(400, "missing_model", "The body has no 'model'. Name one of GET /v1/models."),
                parameter="model",
            )
        )
    length = headers.get(_BYTES, b"")
    if not length.isdigit() or len(length) > _LONGEST_NUMBER:
        message = "The request has no Content-Length, so its cost has no bound. Send the header."
        raise RefusedError(DoorRefusal(411, "length_required", message))
    return AskedRequest(
        path,
        model,
        int(length),
        _number(headers, _MAX_TOKENS, "max_tokens", 0, 10_000_000),
        _number(headers, _CHOICES, "n", 1, MOST_CHOICES) or 1,
        _number(headers, _IMAGES, "images", 0, 1_000_000) or 0,
        _number(headers, _MEDIA_BYTES, "images", 0, 10**_LONGEST_NUMBER) or 0,
        headers.get(_STORED) == b"true",
        next((text for name in _CONVERSATION if (text := _text(headers, name))), ""),
        _project(headers),
        (_text(headers, _USER) or "")[:_LONGEST_USER] or None,
    )


def _project(headers: Mapping[bytes, bytes]) -> str | None:
    text = _text(headers, _PROJECT)
    if text is not None and not _PROJECT_FORM.fullmatch(text):
        message = (
            f"The header {door_headers.CALLERS_PROJECT} may have 1 to 64 letters, digits, '.', '_' and '-'."
        )
        raise RefusedError(DoorRefusal(400, "invalid_project", message))
    return text


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    raw = headers.get(name)
    if raw is None:
        return None
    text = raw.decode("utf-8", "replace")
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:  # Envoy writes texts of JSON with their quotes
        text = text[1:-1]
    return None if text in _ABSENT else text


def _number(headers: Mapping[bytes, bytes], header: bytes, name: str, least: int, most: int) -> int | None:
    """Return a whole number. Envoy writes 100000 as 1e+05."""
    given = headers.get(header, b"")
    if given.isdigit() and len(given) < _LONGEST_NUMBER and least <= (whole := int(given)) <= most:
        return whole
    raw = given.decode("ascii", "replace")
    if raw in _ABSENT:
        return None
    try:
        number = float(raw) if len(raw) <= 2 * _LONGEST_NUMBER else float("nan")
    except ValueError:
        number = float("nan")
    if not least <= number <= most or number != int(number):
        message = f"'{name}' is {raw[:40]}; it must be a whole number from {least} to {most}."
        raise RefusedError(DoorRefusal(400, "invalid_value", message, parameter=name))
    return int(number)
