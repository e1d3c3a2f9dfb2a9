"""Loads images that lines name in S3, as data URLs.

A data URL makes the request self-contained: the engine needs no access to S3, and its logs contain no
signature. A repeated request has the same bytes, and so the same `Idempotency-Key`. The memory for images is
limited over all lines of the process.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from batch.s3_errors import S3_FAILURES, S3Meaning, explanation, meaning_of
from batch.worker.bucket_client import BucketClient, MissingObjectError, OpenObject, in_thread
from batch.worker.retry_budget import MemoryBudget

_SCHEME = "s3://"
# An image, its base64 form, and that form within the request's body.
_COPIES = 4


class ImageError(Exception):
    """An image cannot be sent. The message names it and the reason."""


class ImageNotReadError(Exception):
    """S3 did not give an image, and may give it later. The message names it and the reason.

    is_denied: Whether a policy denies it.
    """

    def __init__(self, reason: str, *, is_denied: bool) -> None:
        super().__init__(reason)
        self.is_denied = is_denied


@dataclass(frozen=True, slots=True)
class HeldImages:
    """The images of one line."""

    urls: Sequence[str]
    held_bytes: int
    """Bytes that they hold of the memory for images."""


class Images:
    """Reads images of any bucket.

    client: boto3's client of S3.
    memory: Limit for the images of all lines.
    """

    def __init__(self, client: Any, memory: MemoryBudget, *, max_bytes: int) -> None:
        self._client = client
        self._memory = memory
        self._maximum = max_bytes
        #: When the images of a line were last read, by the event loop's clock.
        self.read_at = float("-inf")

    async def read(self, names: Sequence[object], prefixes: Sequence[str]) -> HeldImages:
        """Read the images of a line. They hold memory until `let_go`.

        Memory for all of them is reserved at once, by the sizes that S3 reports before it sends them. A line
        that holds memory never waits for more, so lines cannot block each other.

        names: Addresses of the images.
        prefixes: Prefixes from which images may be read.
        Raises ImageError if an image lies elsewhere, cannot be read, is too large, or is not an image. Raises
            ImageNotReadError if S3 does not give an image now.
        """
        with ExitStack() as streams:
            opened = [await self._open(name, prefixes, streams) for name in names]
            size = sum(image.size for image in opened) * _COPIES
            await self._memory.take(size)
            try:
                urls = [await _data_url(str(name), image) for name, image in zip(names, opened, strict=True)]
            except BaseException:
                self._memory.give_back(size)
                raise
        self.read_at = asyncio.get_running_loop().time()
        return HeldImages(urls, size)

    def let_go(self, images: HeldImages) -> None:
        """Release the memory of images."""
        self._memory.give_back(images.held_bytes)

    async def _open(self, name: object, prefixes: Sequence[str], streams: ExitStack) -> OpenObject:
        if not (isinstance(name, str) and name.startswith(_SCHEME)):
            raise ImageError(f"image {name!r} must be an address such as s3://bucket/key")
        if not any(name.startswith(prefix.rstrip("/") + "/") for prefix in prefixes):
            raise ImageError(f"image {name} is not below one of the team's dataPrefixes")
        bucket, _, key = name.removeprefix(_SCHEME).partition("/")
        try:
            image = await BucketClient(self._client, bucket).open(key)
        except MissingObjectError as error:
            raise ImageError(f"image {error}") from error
        except S3_FAILURES as error:
            raise _refused(name, error) from error
        streams.callback(image.stream.close)
        if image.size > self._maximum:
            raise ImageError(f"image {name} has {image.size} bytes, must have at most {self._maximum}")
        return image


async def _data_url(name: str, image: OpenObject) -> str:
    kind = image.content_type
    if not kind.startswith("image/"):
        kind = mimetypes.guess_type(name)[0] or ""
    if not kind.startswith("image/"):
        raise ImageError(f"image {name} has neither the content type nor the file name of an image")
    try:
        content = await in_thread(image.stream.read)
    except S3_FAILURES as error:
        raise _refused(name, error) from error
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _refused(name: str, error: BaseException) -> ImageError | ImageNotReadError:
    """Return what an error of S3 means for the line of an image."""
    meaning, reason = meaning_of(error), f"image {explanation(name, error)}"
    if meaning is S3Meaning.FAULT:
        return ImageError(reason)
    return ImageNotReadError(reason, is_denied=meaning is S3Meaning.DENIED)
