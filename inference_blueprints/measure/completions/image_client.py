"""One request for images to an OpenAI endpoint, timed."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final

import aiohttp

from inference_blueprints.measure.completions.completion_client import (
    HTTP_OK,
    MALFORMED,
    Clock,
    CompletionClient,
    RequestFailedError,
    Stream,
)
from inference_blueprints.spec.types import ImageRequests
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_contracts.image_files import PNG

#: By then a server on this machine has the request, and has not answered it.
_BEGUN_SECONDS: Final = 0.05


class ImageClient(CompletionClient):
    """Sends requests for images. They have no first token: they begin a moment after they are sent.

    session, base_url, model, timeout_seconds, clock: As for `CompletionClient`.
    images: What each request asks for.
    """

    path = IMAGES_PATH

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        model: str,
        *,
        timeout_seconds: float,
        clock: Clock,
        images: ImageRequests,
    ) -> None:
        super().__init__(session, base_url, model, timeout_seconds=timeout_seconds, clock=clock)
        self._images = images

    def body(self, prompt: str, output_tokens: int) -> dict[str, Any]:  # noqa: ARG002 -- images have no length
        return image_body(self._model, prompt, self._images)

    async def _read(self, body: dict[str, Any], stream: Stream) -> None:
        begin = stream.on_first_token or (lambda: None)
        begun = asyncio.get_running_loop().call_later(_BEGUN_SECONDS, begin)
        try:
            await self._receive(body, stream)
        finally:
            begun.cancel()

    async def _receive(self, body: dict[str, Any], stream: Stream) -> None:
        async with self._session.post(self._url, json=body) as response:
            if response.status != HTTP_OK:
                raise RequestFailedError(f"HTTP {response.status}", await response.text(errors="replace"))
            try:
                stream.images = count_images(await response.json())
            except ValueError as error:
                raise RequestFailedError(MALFORMED, str(error)) from error
        if stream.images != self._images.per_request:
            raise RequestFailedError(
                "wrong number of images", f"{stream.images} instead of {self._images.per_request}"
            )
        stream.last = self._clock()


def image_body(model: str, prompt: str, images: ImageRequests) -> dict[str, Any]:
    """Return the body of a request for images.

    images: What it asks for.
    """
    return {
        "model": model,
        "prompt": prompt,
        "n": images.per_request,
        "size": images.size,
        "num_inference_steps": images.steps,
    }


def count_images(answer: Any) -> int:
    """Return the number of PNG files in an answer.

    Raises ValueError if the answer has another layout, or an entry is no PNG file in base64.
    """
    try:
        files = [base64.b64decode(each["b64_json"], validate=True) for each in answer["data"]]
    except (LookupError, TypeError, binascii.Error) as error:
        raise ValueError(f"the answer is not one of {IMAGES_PATH}: {error!r}") from error
    for number, file in enumerate(files):
        if not file.startswith(PNG):
            raise ValueError(f"image {number} is not a PNG file")
    return len(files)
