"""Joins the results of all shards of a job and sums them up."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from batch.completion.shard_results import ShardResults, Unrun, read_results
from batch.contracts.shard import Usage
from batch.objects import MAX_PARTS, MIN_PART_BYTES, Objects
from inference_contracts.batch_keys import JobKeys
from inference_contracts.json_record import JsonRecord

# Joins any number of objects in several calls of a function, each of which continues where the last ended.
#
# S3 copies a part of an object by itself only if it has 5 MiB (`batch.objects`). Smaller objects must be read
# and written, for which a function of 15 minutes has too little time if a job has very many. So they are
# first joined in groups. A group is an object of its own, and a later call finds it and continues with the
# next one. In the end only groups and large objects are left, which S3 copies.

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


_READS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Outcome(JsonRecord):
    """Result of a job."""

    completed: int
    """Lines with an answer."""
    failed: int
    """Lines that ended with an error, including invalid lines."""
    attempts: int
    """Number of requests sent."""
    usage: Usage
    """Tokens that the endpoint counted over all answers."""
    undone: tuple[str, ...]
    """Shards with lines left, including lines that expired at the deadline. A redrive runs them."""


def merge(
    job: str, attempt: int, objects: Objects, *, unrun: Unrun, has_time: Callable[[], bool]
) -> Outcome | None:
    """Write the output and error files of a job from the results of its shards.

    A repeated call writes the same. If time ends before the files are complete, return None; the next call
    continues.

    attempt: The attempt that has run.
    unrun: Why lines without a result never ran. Each gets a row in the error file.
    has_time: Returns whether a call may begin another step of some seconds.
    """
    keys = JobKeys(job)
    shards = [json.loads(line) for line in objects.read(keys.shards).splitlines()]
    parts, rest = objects.sizes(keys.parts), objects.sizes(keys.rest)

    def read(entry: Mapping[str, Any]) -> ShardResults | None:
        return read_results(
            keys.shard(entry["shard"]),
            parts,
            objects,
            lines=entry["lines"],
            unrun=unrun,
            rest=rest,
            has_time=has_time,
        )

    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        found = list(pool.map(read, shards))
    results = [each for each in found if each is not None]
    if len(results) < len(found):
        return None
    invalid = objects.sizes(keys.invalid)
    files = {
        keys.output: _all(each.output for each in results),
        keys.error: invalid | _all(each.error for each in results),
    }
    groups = keys.joined_prefix(attempt)
    if not all(
        join_gradually(objects, sources, target, groups=groups, has_time=has_time)
        for target, sources in files.items()
    ):
        return None
    reports = [each.report for each in results]
    return Outcome(
        completed=sum(report.completed for report in reports),
        failed=sum(report.failed for report in reports) + _lines(keys.invalid, invalid, objects),
        attempts=sum(report.attempts for report in reports),
        usage=sum((report.usage for report in reports), Usage()),
        undone=tuple(each.report.shard for each in results if not each.is_done),
    )


def _all(sizes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sizes of non-empty objects by key."""
    return {key: size for each in sizes for key, size in each.items() if size}


def _lines(key: str, sizes: dict[str, int], objects: Objects) -> int:
    """Return the lines of an object; empty if it does not exist."""
    return sum(piece.count(b"\n") for piece in objects.pieces(key)) if sizes.get(key) else 0
