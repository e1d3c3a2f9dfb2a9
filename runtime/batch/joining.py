"""Which parts of an upload make one object of many: copied within S3 where they are large, read where not.

S3 takes 10,000 parts of 5 MiB to 5 GiB, of which only the last may be smaller
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_PARTS = 10_000
LEAST_PART_BYTES = 5 * 2**20
MOST_PART_BYTES = 5 * 2**30
#: What is read makes parts of so many bytes at the least.
_READ_PART_BYTES = 16 * 2**20
#: Parts that are left for what is read, where there are more objects than parts.
_READ_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """Bytes of an object that S3 copies by itself.

    Parameters
    ----------
    key
        The object.
    start, end
        The first byte, and the one after the last.
    """

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ReadPart:
    """Objects that are read and written as one part.

    Parameters
    ----------
    keys
        The objects.
    """

    keys: Sequence[str]


def plan_parts(sizes: Mapping[str, int]) -> tuple[list[CopiedPart], list[ReadPart]]:
    """Return the parts that objects make, those that are read after those that are copied.

    Parameters
    ----------
    sizes
        Bytes by key; empty ones make nothing.
    """
    copied = {key: list(_ranges(key, size)) for key, size in sizes.items() if size >= LEAST_PART_BYTES}
    read = {key: size for key, size in sizes.items() if 0 < size < LEAST_PART_BYTES}
    joined = list(_joined(read, _READ_PART_BYTES))
    if sum(map(len, copied.values())) + len(joined) > MOST_PARTS:
        room = MOST_PARTS - _READ_PARTS
        for key in sorted(copied, key=lambda key: sizes[key], reverse=True):
            room -= len(copied[key])
            if room < 0:
                del copied[key]
                read[key] = sizes[key]
        least = max(_READ_PART_BYTES, math.ceil(sum(read.values()) / _READ_PARTS))
        joined = list(_joined(read, least))
    return [part for parts in copied.values() for part in parts], joined


def _ranges(key: str, size: int) -> Iterator[CopiedPart]:
    """Iterate over an object's bytes in equal parts, as few as there may be."""
    count = math.ceil(size / MOST_PART_BYTES)
    for number in range(count):
        yield CopiedPart(key, size * number // count, size * (number + 1) // count)


def _joined(sizes: Mapping[str, int], least: int) -> Iterator[ReadPart]:
    """Iterate over runs of objects, each with so many bytes at the least, but for the last."""
    keys: list[str] = []
    held = 0
    for key, size in sizes.items():
        keys.append(key)
        held += size
        if held >= least:
            yield ReadPart(keys)
            keys, held = [], 0
    if keys:
        yield ReadPart(keys)
