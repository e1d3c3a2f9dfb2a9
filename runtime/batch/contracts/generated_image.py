"""An image that was generated for a line: its object, the identifier of its file, and its tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from inference_contracts.batch_keys import JOB_PATTERN, ShardKeys
from inference_contracts.batch_limits import DEFAULT_IMAGE_SIDE, PIXEL_SIDE_PER_TOKEN

_SIZE: Final = re.compile("([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_FILE_ID: Final = re.compile(rf"image-({JOB_PATTERN})-([0-9-]+)-([0-9]+)-([0-9]+)\.(png|jpeg|webp)")


@dataclass(frozen=True, slots=True)
class GeneratedImage:
    """The place of a generated image."""

    job: str
    """The job's identifier."""
    shard: str
    ordinal: int
    """Index of the line in the shard."""
    number: int
    """Index of the image in the answer."""
    ending: str
    """``png``, ``jpeg`` or ``webp``."""

    @property
    def key(self) -> str:
        """Key of its object in the batch bucket."""
        return ShardKeys(self.job, self.shard).image(self.ordinal, self.number, self.ending)

    @property
    def file_id(self) -> str:
        """Identifier with which the job's team gets it from the API. It needs no record of its own."""
        return f"image-{self.job}-{self.shard}-{self.ordinal}-{self.number}.{self.ending}"

    @classmethod
    def of_file_id(cls, text: str) -> Self | None:
        """Return the image that an identifier names; None if it does not name one.

        text: An identifier in the form of `file_id`.
        """
        found = _FILE_ID.fullmatch(text)
        return found and cls(found[1], found[2], int(found[3]), int(found[4]), found[5])


def read_size(text: object) -> tuple[int, int] | None:
    """Return width and height; None if a value has another form than ``1024x768``."""
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    return found and (int(found[1]), int(found[2]))


def image_count(body: Mapping[str, Any]) -> int:
    """Return the number of images that a request asks for."""
    count = body.get("n")
    return 1 if count is None else int(count)


def image_tokens(size: object) -> int:
    """Return the output tokens that an image counts as.

    size: Its size, such as ``1024x768``; None for the default.
    """
    width, height = read_size(size) or (DEFAULT_IMAGE_SIDE, DEFAULT_IMAGE_SIDE)
    return -(-width // PIXEL_SIDE_PER_TOKEN) * -(-height // PIXEL_SIDE_PER_TOKEN)
