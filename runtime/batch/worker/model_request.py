"""Builds requests from lines: takes the body of the line, and inserts its images."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from batch.contracts.job_description import JobDescription
from batch.contracts.shard import ShardLine
from batch.worker.image_loader import HeldImages, Images
from inference_contracts.batch_body_fields import IMAGES_PATH


class InvalidLineError(Exception):
    """No request can be made from a line. The message names the reason."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The request of a line. Retries send it unchanged."""

    body: bytes
    idempotency_key: str
    """Equal for equal requests of a job, and different for all others."""
    images: HeldImages | None = None
    """Images that hold memory for this request."""


class Requests:
    """Makes the requests of a job. Templates were rendered when the input was checked."""

    def __init__(self, description: JobDescription, images: Images) -> None:
        self._description = description
        self._images = images

    async def make(self, line: ShardLine) -> ModelRequest:
        """Make the request of a line. Its images hold memory until `let_go`.

        Raises InvalidLineError if its body is not an object, or has no prompt that its images can go before.
        Raises ImageError if an image cannot be sent. Raises ImageNotReadError if S3 does not give an image
        now.
        """
        if not isinstance(line.body, Mapping):
            raise InvalidLineError("the body of the line is not an object")
        body = {**line.body, "model": self._description.model}
        if self._description.endpoint == IMAGES_PATH and body.get("seed") is None:
            body["seed"] = _seed(self._description.job, line.custom_id)
        if not line.images:
            return self._seal(line, body, None)
        message = _only_message(body)
        images = await self._images.read(line.images, self._description.data_prefixes)
        messages = [{**message, "content": _with_images(message["content"], images.urls)}]
        return self._seal(line, {**body, "messages": messages}, images)

    @property
    def images_read_at(self) -> float:
        """When the images of a line were last read, by the event loop's clock."""
        return self._images.read_at

    def let_go(self, request: ModelRequest) -> None:
        """Release the memory of a request.

        request: A request of `make`. It must not be sent again.
        """
        if request.images is not None:
            self._images.let_go(request.images)

    def _seal(self, line: ShardLine, values: Mapping[str, Any], images: HeldImages | None) -> ModelRequest:
        body = orjson.dumps(values)
        names = orjson.dumps([self._description.job, line.custom_id])
        return ModelRequest(body, hashlib.sha256(names + b"\n" + body).hexdigest(), images)


def _seed(job: str, custom_id: str) -> int:
    """Return the seed of a line's images, so that a line that runs again asks for the same images.

    Without one, vllm-omni 0.30.0 chooses a random seed of 32 bits for each request (`generate_images` of
    `entrypoints/openai/api_server.py`).
    """
    return int.from_bytes(hashlib.sha256(orjson.dumps([job, custom_id])).digest()[:4])


def _only_message(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of a body that a template made."""
    match body.get("messages"):
        case [{"content": str()} as message]:
            return dict(message)
    raise InvalidLineError("the line has images, but not exactly one message with a text")


def _with_images(prompt: str, urls: Sequence[str]) -> list[dict[str, Any]]:
    """Return the content of a message with images before the text."""
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [*pictures, {"type": "text", "text": prompt}]
