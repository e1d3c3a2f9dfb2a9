"""Replaces images in requests to simulated engines by as many words as they have tokens.

Images are not fetched. The simulated engine cannot read images: it would count an image as one token, or
count the text of its address (Dynamo 1.6.1). Requests that a real engine refuses are refused here too:
images for a text-only model, too many images, and images on hosts that the blueprint does not list.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from inference_blueprints.measure.tokenizer import random_text

#: Per path: the field with the messages, and the type of image parts.
_MESSAGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"/v1/chat/completions": ("messages", "image_url"), "/v1/responses": ("input", "input_image")}
)
_IMAGE = b'image_url"'
_WITHIN = "data:image/"
_SCHEMES = ("http", "https")


class ImageRefusedError(ValueError):
    """A request whose images a real engine would refuse. The text is shown to the client."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """Limits on the images in requests."""

    per_request: int = 0
    """Maximum number of images per request. 0 for a text-only model."""
    tokens: int = 0
    """Tokens per image."""
    domains: tuple[str, ...] = ()
    """Hosts that images may be fetched from."""


#: The limits of a text-only model.
TEXT_ALONE = ImageLimits()


def with_images_as_words(path: str, body: bytes, limits: ImageLimits) -> bytes:
    """Return the body of a request with words in place of its images. Other bodies are unchanged.

    The same image always becomes the same words, so that it hits the prefix cache.

    path: Path of the request, without its query.
    body: Its body. An invalid body is returned unchanged, and the frontend refuses it.
    limits: Limits of the model.
    Raises ImageRefusedError if the request exceeds the limits.
    """
    place = _MESSAGES.get(path)
    if place is None or _IMAGE not in body:
        return body
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return body
    messages, image = place
    count = 0
    for message in _of_parts(request, messages, image):
        written = []
        for part in message["content"]:
            if part.get("type") == image:
                count += 1
                _check(count, address := _address(part), limits)
                written.append(random_text(limits.tokens, _seed(address)))
            elif isinstance(part.get("text"), str):
                written.append(part["text"])
            else:
                raise ImageRefusedError(f"a part of type {part.get('type')!r} is neither text nor image")
        message["content"] = "".join(written)
    return json.dumps(request).encode() if count else body


def _of_parts(request: Any, messages: str, image: str) -> Iterator[dict[str, Any]]:
    """Yield the messages whose content is a list of parts with an image among them."""
    listed = request.get(messages) if isinstance(request, dict) else None
    for message in listed if isinstance(listed, list) else ():
        parts = message.get("content") if isinstance(message, dict) else None
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            continue
        if any(part.get("type") == image for part in parts):
            yield message


def _address(part: Mapping[str, Any]) -> str:
    """Return the URL of an image, or its data URL."""
    address = part.get("image_url")
    if isinstance(address, dict):
        address = address.get("url")
    return address if isinstance(address, str) else ""


def _check(count: int, address: str, limits: ImageLimits) -> None:
    """Raise an error for an image that a real engine would refuse."""
    if not limits.per_request:
        raise ImageRefusedError("this model accepts only text; its blueprint has no 'media'")
    if count > limits.per_request:
        raise ImageRefusedError(f"a request may contain at most {limits.per_request} images")
    if address.startswith(_WITHIN):
        return
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        raise ImageRefusedError("the URL of an image is not valid") from None
    if parts.scheme not in _SCHEMES or host not in limits.domains:
        allowed = ", ".join(limits.domains) or "none"
        raise ImageRefusedError(
            f"got an image at {parts.scheme}://{host}; send images inside the request, or by HTTP or HTTPS "
            f"from an allowed host: {allowed}"
        )


def _seed(address: str) -> int:
    """Return a number that depends only on the image."""
    return int.from_bytes(hashlib.sha256(address.encode()).digest()[:8])
