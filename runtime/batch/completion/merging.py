"""Joins the results of all shards of a job and sums them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from batch.completion.gradual_joining import join_gradually
from batch.completion.shard_results import ShardResults, Unrun, read_results
from batch.contracts.shard import Usage
from batch.objects import Objects
from inference_contracts.batch_keys import JobKeys
from inference_contracts.json_record import JsonRecord

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
