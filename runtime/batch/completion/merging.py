"""Joins what the shards of a job left, and sums it up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from batch.contracts.keys import JobKeys, ShardKeys
from batch.contracts.shard import ShardDone, Usage
from batch.objects import Objects

_READS_AT_ONCE = 16
_SUCCEEDED = range(200, 300)


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
        What the endpoint counted over all answers; those of shards that are not done were given too.
    undone
        Shards that are not done; a redrive runs them.
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
    """Write a job's output and error files from the shards that are done; doing it again writes the same.

    Parameters
    ----------
    job
        The job's identifier.
    objects
        The batch bucket.
    """
    keys = JobKeys(job)
    shards = [json.loads(line)["shard"] for line in objects.read(keys.shards).splitlines()]
    sizes = objects.sizes(keys.parts)
    done = [shard for shard in shards if keys.shard(shard).done in sizes]
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        contents = pool.map(lambda shard: objects.read(keys.shard(shard).done), done)
        reports = [ShardDone.from_json(content) for content in contents]
        undone = [shard for shard in shards if keys.shard(shard).done not in sizes]
        usages = [report.usage for report in reports]
        usages += pool.map(lambda shard: _usage_of_log(keys.shard(shard), objects), undone)
    invalid = objects.sizes(keys.invalid)
    objects.join(_sized((keys.shard(shard).output for shard in done), sizes), keys.output)
    objects.join(invalid | _sized((keys.shard(shard).error for shard in done), sizes), keys.error)
    return Outcome(
        completed=sum(report.completed for report in reports),
        failed=sum(report.failed for report in reports) + _lines(keys.invalid, invalid, objects),
        attempts=sum(report.attempts for report in reports),
        usage=sum(usages, Usage()),
        undone=tuple(undone),
    )


def _usage_of_log(keys: ShardKeys, objects: Objects) -> Usage:
    """Return what the endpoint counted over the answers that a shard has committed."""
    usage = Usage()
    for chunk in objects.sizes(keys.chunks):
        for row in objects.read(chunk).split(b"\n")[:-1]:
            response = json.loads(row)["response"]
            if response is not None and response["status_code"] in _SUCCEEDED:
                usage += Usage.of_answer(response["body"])
    return usage


def _sized(keys: Iterable[str], sizes: dict[str, int]) -> dict[str, int]:
    """Return bytes by key of those objects that are there."""
    return {key: sizes[key] for key in keys if key in sizes}


def _lines(key: str, sizes: dict[str, int], objects: Objects) -> int:
    """Return the lines of an object; none where it is not there."""
    return sum(piece.count(b"\n") for piece in objects.pieces(key)) if sizes.get(key) else 0
