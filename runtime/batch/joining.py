"""Plans how parts become one object: S3 copies large parts, and the function reads small ones.

S3 accepts 10,000 parts of 5 MiB to 5 GiB. Only the last part may be smaller
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_PARTS = 10_000
MIN_PART_BYTES = 5 * 2**20
MAX_PART_BYTES = 5 * 2**30
#: Smallest part that is read and written.
_READ_PART_BYTES = 16 * 2**20
#: Parts reserved for content that is read, if there are more objects than parts.
_READ_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """A byte range of an object that S3 copies by itself."""

    key: str
    start: int
    """First byte."""
    end: int
    """The byte after the last."""


@dataclass(frozen=True, slots=True)
class ReadPart:
    """Objects that are read and then written as one part."""

    keys: Sequence[str]


def plan_parts(sizes: Mapping[str, int]) -> tuple[list[CopiedPart], list[ReadPart]]:
    """Return the parts that join objects. Parts to read follow parts to copy.

    sizes: Sizes in bytes by key. Empty objects are left out.
    """
    copied = {key: list(_ranges(key, size)) for key, size in sizes.items() if size >= MIN_PART_BYTES}
    read = {key: size for key, size in sizes.items() if 0 < size < MIN_PART_BYTES}
    joined = list(_joined(read, _READ_PART_BYTES))
    if sum(map(len, copied.values())) + len(joined) > MAX_PARTS:
        room = MAX_PARTS - _READ_PARTS
        for key in sorted(copied, key=lambda key: sizes[key], reverse=True):
            room -= len(copied[key])
            if room < 0:
                del copied[key]
                read[key] = sizes[key]
        minimum = max(_READ_PART_BYTES, math.ceil(sum(read.values()) / _READ_PARTS))
        joined = list(_joined(read, minimum))
    return [part for parts in copied.values() for part in parts], joined


def _ranges(key: str, size: int) -> Iterator[CopiedPart]:
    """Iterate over an object's bytes in as few equal ranges as possible."""
    count = math.ceil(size / MAX_PART_BYTES)
    for number in range(count):
        yield CopiedPart(key, size * number // count, size * (number + 1) // count)


def _joined(sizes: Mapping[str, int], minimum: int) -> Iterator[ReadPart]:
    """Iterate over runs of objects that reach the smallest part size. The last run may be smaller."""
    keys: list[str] = []
    held = 0
    for key, size in sizes.items():
        keys.append(key)
        held += size
        if held >= minimum:
            yield ReadPart(keys)
            keys, held = [], 0
    if keys:
        yield ReadPart(keys)
