"""Joins what the shards of a job left, and sums it up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from batch.completion.shard_results import read_results
from batch.contracts.keys import JobKeys
from batch.contracts.shard import Usage
from batch.objects import Objects

_READS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job.

    Parameters
    ----------
    completed, failed
        Lines with an answer; lines that ended as an error, those included that never were valid.
    attempts
        Requests that were sent.
    usage
        What the endpoint counted over all answers.
    undone
        Shards of which lines are left, if only such as the deadline overtook; a redrive runs them.
    """

    completed: int
    failed: int
    attempts: int
    usage: Usage
    undone: tuple[str, ...]

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Outcome:
        """Read the document.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a document.
        """
        values = json.loads(text)
        return cls(**{**values, "usage": Usage(**values["usage"]), "undone": tuple(values["undone"])})


def merge(job: str, objects: Objects) -> Outcome:
    """Write a job's output and error files from what its shards have left; doing it again writes the same.

    Parameters
    ----------
    job
        The job's identifier.
    objects
        The batch bucket.
    """
    keys = JobKeys(job)
    shards = [json.loads(line)["shard"] for line in objects.read(keys.shards).splitlines()]
    parts = objects.sizes(keys.parts)
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        results = list(pool.map(lambda shard: read_results(keys.shard(shard), parts, objects), shards))
    invalid = objects.sizes(keys.invalid)
    objects.join(_all(each.output for each in results), keys.output)
    objects.join(invalid | _all(each.error for each in results), keys.error)
    reports = [each.report for each in results]
    return Outcome(
        completed=sum(report.completed for report in reports),
        failed=sum(report.failed for report in reports) + _lines(keys.invalid, invalid, objects),
        attempts=sum(report.attempts for report in reports),
        usage=sum((report.usage for report in reports), Usage()),
        undone=tuple(each.report.shard for each in results if not each.is_done),
    )


def _all(sizes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return bytes by key of those objects that hold something."""
    return {key: size for each in sizes for key, size in each.items() if size}


def _lines(key: str, sizes: dict[str, int], objects: Objects) -> int:
    """Return the lines of an object; none where it is not there."""
    return sum(piece.count(b"\n") for piece in objects.pieces(key)) if sizes.get(key) else 0
