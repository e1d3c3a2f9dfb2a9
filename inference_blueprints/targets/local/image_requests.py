"""Images in requests to simulated engines: as many words as they have tokens, and nobody fetches them.

The simulated engine has no eyes: it would take an image for one token, or for the text of its address (Dynamo
1.6.1). What a real engine refuses is refused here too: images for a model that reads text alone, too many of
them, and addresses at other hosts than the blueprint's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from inference_blueprints.measurement.tokenizer.vocabulary import random_text

#: Where the messages of a request are, and the type of their parts that are images, by path.
_MESSAGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"/v1/chat/completions": ("messages", "image_url"), "/v1/responses": ("input", "input_image")}
)
_IMAGE = b'image_url"'
_WITHIN = "data:image/"
_SCHEMES = ("http", "https")


class ImageRefusedError(ValueError):
    """A request that a real engine would refuse for its images; the text is for who asked."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What requests may hold of images.

    Parameters
    ----------
    per_request
        Images at the most; 0 for a model that reads text alone.
    tokens
        Tokens that each counts.
    domains
        Hosts that an address may name.
    """

    per_request: int = 0
    tokens: int = 0
    domains: tuple[str, ...] = ()


#: Those of a model that reads text alone.
TEXT_ALONE = ImageLimits()


def with_images_as_words(path: str, body: bytes, limits: ImageLimits) -> bytes:
    """Return the body of a request with words in the place of its images; others as they came.

    An image is always the same words, so that its place in a prompt is found again in the caches.

    Parameters
    ----------
    path
        Path of the request, without its query.
    body
        Its body; one that is not as the API says is left for the frontend to refuse.
    limits
        What the model's requests may hold.

    Raises
    ------
    ImageRefusedError
        If they hold anything else.
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
    """Return where an image is, or the image itself."""
    address = part.get("image_url")
    if isinstance(address, dict):
        address = address.get("url")
    return address if isinstance(address, str) else ""


def _check(count: int, address: str, limits: ImageLimits) -> None:
    """Refuse what a real engine would."""
    if not limits.per_request:
        raise ImageRefusedError("this model reads text alone; its blueprint has no 'media'")
    if count > limits.per_request:
        raise ImageRefusedError(f"at most {limits.per_request} images may be in a request")
    if address.startswith(_WITHIN):
        return
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        raise ImageRefusedError("the address of an image cannot be read") from None
    if parts.scheme not in _SCHEMES or host not in limits.domains:
        allowed = ", ".join(limits.domains) or "none"
        raise ImageRefusedError(
            f"an image is at {parts.scheme}://{host}; images come within the request or from allowed hosts, "
            f"which are {allowed}"
        )


def _seed(address: str) -> int:
    """Return a number for an image."""
    return int.from_bytes(hashlib.sha256(address.encode()).digest()[:8])
