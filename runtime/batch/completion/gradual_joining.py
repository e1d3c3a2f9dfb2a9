"""Joins any number of objects in several calls of a function, each of which continues where the last ended.

S3 copies a part of an object by itself only if it has 5 MiB (`batch.joining`). Smaller objects must be read
and written, for which a function of 15 minutes has too little time if a job has very many. So they are first
joined in groups. A group is an object of its own, and a later call finds it and continues with the next one.
In the end only groups and large objects are left, which S3 copies.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from batch.joining import MAX_PARTS, MIN_PART_BYTES
from batch.objects import Objects

#: Small objects up to this many bytes are joined at once: that takes about ten seconds.
_AT_ONCE_BYTES: Final = 512 * 2**20
#: Size that a group reaches. It is read and written in seconds, in parts of which few are in memory.
_GROUP_BYTES: Final = 128 * 2**20
#: Large objects that are joined without groups. The other half of the parts is for groups of small objects.
_MAX_LARGE: Final = MAX_PARTS // 2


def join_gradually(
    objects: Objects, sources: Mapping[str, int], target: str, *, groups: str, has_time: Callable[[], bool]
) -> bool:
    """Join objects into one, and return whether that is complete. If not, call it again.

    sources: Sizes in bytes by key.
    target: Key of the joined object.
    groups: Prefix of the groups. It must change if an object's content changes and its size does not.
    has_time: Returns whether another group may be joined.
    """
    small = {key: size for key, size in sources.items() if size < MIN_PART_BYTES}
    large = {key: size for key, size in sources.items() if size >= MIN_PART_BYTES}
    if sum(small.values()) <= _AT_ONCE_BYTES and len(sources) <= _MAX_LARGE:
        objects.join(sources, target)
        return True
    found, existing = list(_by_bytes(small)), objects.sizes(groups)
    if len(large) > _MAX_LARGE:
        found, large = [*found, *_by_count(large)], {}
    joined: dict[str, int] = {}
    for group in found:
        size = sum(group.values())
        key = f"{groups}{_digest(group)}.jsonl"
        if existing.get(key) != size:
            if not has_time():
                return False
            objects.join(group, key)
        joined[key] = size
    objects.join(large | joined, target)
    return True


def _by_bytes(small: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Iterate over groups of at least `_GROUP_BYTES`. The last one may be smaller."""
    group: dict[str, int] = {}
    held = 0
    for key, size in small.items():
        group[key] = size
        held += size
        if held >= _GROUP_BYTES:
            yield group
            group, held = {}, 0
    if group:
        yield group


def _by_count(large: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Iterate over groups of objects that S3 copies, half as many as may be joined in the end."""
    items = iter(large.items())
    count = math.ceil(2 * len(large) / _MAX_LARGE)
    while group := dict(itertools.islice(items, count)):
        yield group


def _digest(group: Mapping[str, int]) -> str:
    return hashlib.sha256(repr(sorted(group.items())).encode()).hexdigest()[:32]
