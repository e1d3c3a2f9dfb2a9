"""Lists the parts of a job's results that are in the signal store, and those that are not."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from batch.contracts.progress_items import Published
from batch.objects import Objects
from inference_contracts.batch_keys import JobKeys

_READS_AT_ONCE = 16


def list_unpublished(job: str, objects: Objects) -> list[str]:
    """Return the finished parts of a job whose answers are not all in the store."""
    keys = JobKeys(job)
    sizes = objects.sizes(keys.parts)
    published = objects.sizes(keys.published)
    names = sorted({key.removeprefix(keys.parts).partition("/")[0] for key in sizes})
    parts = map(keys.part, names)
    return [
        part.part
        for part in parts
        if part.done in sizes and sizes.get(part.output) and part.published not in published
    ]


def write_publications(job: str, objects: Objects) -> int:
    """List the parts to publish, one per line, and return their number."""
    parts = list_unpublished(job, objects)
    lines = b"".join(json.dumps({"part": part}).encode() + b"\n" for part in parts)
    objects.write(JobKeys(job).publications, lines, content_type="application/jsonl")
    return len(parts)


def count_published(job: str, objects: Objects) -> Published:
    """Return the counts of a job's published answers."""
    keys = objects.sizes(JobKeys(job).published)
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        return sum(map(Published.from_json, pool.map(objects.read, keys)), Published())
