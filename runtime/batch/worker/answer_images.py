"""Writes the images of an answer as objects, and puts their places into the answer instead of their bytes.

The objects of a line always have the same keys. A line that runs again, because its worker was killed before
it committed the row, replaces them. The memory for answers with images is limited over all lines of the
process: it is taken by the size that the endpoint announces, before the answer is read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.generated_image import GeneratedImage, image_count, image_tokens
from batch.contracts.shard import ShardLine, Usage
from batch.s3_errors import S3Meaning, meaning_of
from batch.worker.bucket_client import BucketClient
from batch.worker.model_endpoint import Answer, EndpointFault, Failure
from batch.worker.retry_budget import MemoryBudget
from inference_contracts import image_files

#: An answer as bytes and as values, and one of its images.
_COPIES: Final = 3
#: Uploads at the same time. They have threads of their own: while S3 refuses images, commits and heartbeats
#: go on.
_UPLOADS: Final = 8
_SUCCESS: Final = range(200, 300)
#: First bytes of a file by the end of its name.
_BEGINNINGS: Final = {"png": image_files.PNG, "jpeg": image_files.JPEG, "webp": image_files.WEBP}
_WEBP: Final = slice(8, 12)
_SHOWN_BYTES: Final = 8


class ImageNotStoredError(Exception):
    """S3 did not accept an image. The message names the key and the reason."""


class _WrongImagesError(Exception):
    """An answer does not contain the images of its request. The message says why."""


@dataclass(slots=True)
class HeldMemory:
    """Memory of one answer."""

    budget: MemoryBudget
    """Memory of all answers."""
    _size: int = 0

    async def room(self, size: int) -> None:
        """Wait for the memory of an answer.

        size: Bytes of the answer.
        """
        await self.budget.take(size * _COPIES)
        self._size += size * _COPIES

    def let_go(self) -> None:
        """Give all of it back."""
        self.budget.give_back(self._size)
        self._size = 0


@dataclass(slots=True)
class AnswerImages:
    """Writes images of all lines of the process."""

    bucket: BucketClient
    """The batch bucket."""
    memory: MemoryBudget
    """Limit for the answers of all lines."""
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_UPLOADS, "images"), init=False
    )

    def of_shard(self, job: str, shard: str) -> ShardImages:
        """Return what writes the images of one shard."""
        return ShardImages(self, job, shard)

    async def write(self, places: Sequence[GeneratedImage], texts: Sequence[str]) -> list[dict[str, Any]]:
        """Write images, one after the other, and return the entries that name them.

        places: The place of each image.
        texts: The images in base64.
        Raises ImageNotStoredError if S3 refuses one, after the repetitions of botocore. Raises ClientError if
            a policy denies one.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._write, places, texts)

    def _write(self, places: Sequence[GeneratedImage], texts: Sequence[str]) -> list[dict[str, Any]]:
        return [self._write_one(place, text) for place, text in zip(places, texts, strict=True)]

    def _write_one(self, place: GeneratedImage, text: str) -> dict[str, Any]:
        content = base64.b64decode(text)
        media_type = f"image/{place.ending}"
        try:
            address = self.bucket.write_now(place.key, content, content_type=media_type)
        except (BotoCoreError, ClientError) as error:
            if meaning_of(error) is S3Meaning.DENIED:
                raise  # It is the platform's own bucket: the shard is tried again.
            raise ImageNotStoredError(f"{place.key} was not stored: {error}") from error
        return {
            "file_id": place.file_id,
            "uri": address,
            "media_type": media_type,
            "bytes": len(content),
        }


@dataclass(frozen=True, slots=True)
class ShardImages:
    """Writes the images of one shard."""

    shared: AnswerImages
    """Shared by the process."""
    job: str
    """The job's identifier."""
    shard: str

    @contextmanager
    def held(self) -> Iterator[HeldMemory]:
        """Hold the memory of one answer until the ``with`` block ends."""
        memory = HeldMemory(self.shared.memory)
        try:
            yield memory
        finally:
            memory.let_go()

    async def store(self, line: ShardLine, answer: Answer) -> Answer | Failure:
        """Write the images of an answer, and return the answer with their places.

        line: The line that was asked.
        answer: The endpoint's answer. An error stays as it is.
        Returns: A failure if the answer does not contain the images of the request.
        Raises ImageNotStoredError if S3 does not accept an image.
        """
        if answer.status not in _SUCCESS:
            return answer
        document = orjson.loads(answer.body)
        try:
            texts, ending = _read(document, line.body)
        except _WrongImagesError as error:
            return Failure(EndpointFault.BROKEN, f"status {answer.status}: {error}")
        places = [
            GeneratedImage(self.job, self.shard, line.ordinal, number, ending) for number in range(len(texts))
        ]
        entries = await self.shared.write(places, texts)
        per_image = image_tokens(document.get("size") or line.body.get("size"))
        usage = Usage(input_tokens=line.tokens, output_tokens=len(texts) * per_image)
        named = {
            **{name: document[name] for name in ("created", "output_format", "size") if name in document},
            "data": entries,
            "usage": {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens},
        }
        return replace(answer, body=orjson.dumps(named), usage=usage)


def _read(document: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the images of an answer in base64, and the end of their names.

    Raises _WrongImagesError if they are not the images of the request.
    """
    data = document.get("data")
    wanted = image_count(asked)
    if not isinstance(data, list) or len(data) != wanted:
        found = f"{len(data)} entries" if isinstance(data, list) else "no list"
        raise _WrongImagesError(f"'data' has {found} for {wanted} images")
    ending = str(asked.get("output_format") or "png")
    if ending not in _BEGINNINGS:
        raise _WrongImagesError(f"'output_format' is none of {', '.join(_BEGINNINGS)}")
    texts = [_text(number, each) for number, each in enumerate(data)]
    for number, text in enumerate(texts):
        _check(number, text, ending)
    return texts, ending


def _text(number: int, entry: object) -> str:
    """Return the image of an entry in base64."""
    text = entry.get("b64_json") if isinstance(entry, dict) else None
    if not isinstance(text, str) or not text:
        raise _WrongImagesError(f"image {number} has no 'b64_json'")
    return text


def _check(number: int, text: str, ending: str) -> None:
    """Make sure that a text is the base64 form of an image of this kind."""
    try:
        content = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise _WrongImagesError(f"image {number} is not base64: {error}") from error
    is_right = content.startswith(_BEGINNINGS[ending]) and (ending != "webp" or content[_WEBP] == b"WEBP")
    if not is_right:
        begin = content[:_SHOWN_BYTES].hex(" ") or "nothing"
        raise _WrongImagesError(f"image {number} is not {ending}: it begins with {begin}")
