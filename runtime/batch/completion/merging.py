"""Joins the results of all shards of a job and sums them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from batch.completion.gradual_joining import join_gradually
from batch.completion.shard_results import read_results
from batch.contracts.shard import Usage
from batch.json_record import JsonRecord
from batch.objects import Objects
from inference_blueprints.contracts.batch_keys import JobKeys

_READS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Outcome(JsonRecord):
    """Result of a job.

    Parameters
    ----------
    completed, failed
        Lines with an answer, and lines that ended with an error, including invalid lines.
    attempts
        Number of requests sent.
    usage
        Tokens that the endpoint counted over all answers.
    undone
        Shards with lines left, including lines that expired at the deadline. A redrive runs them.
    """

    completed: int
    failed: int
    attempts: int
    usage: Usage
    undone: tuple[str, ...]


def merge(job: str, attempt: int, objects: Objects, *, has_time: Callable[[], bool]) -> Outcome | None:
    """Write the output and error files of a job from the results of its shards.

    A repeated call writes the same. If time ends before the files are complete, return None; the next call
    continues.

    Parameters
    ----------
    attempt
        The attempt that has run.
    has_time
        Returns whether a call may begin another step of some seconds.
    """
    keys = JobKeys(job)
    shards = [json.loads(line)["shard"] for line in objects.read(keys.shards).splitlines()]
    parts = objects.sizes(keys.parts)
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        results = list(pool.map(lambda shard: read_results(keys.shard(shard), parts, objects), shards))
    invalid = objects.sizes(keys.invalid)
    files = {
        keys.output: _all(each.output for each in results),
        keys.error: invalid | _all(each.error for each in results),
    }
    groups = keys.joined(attempt)
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
