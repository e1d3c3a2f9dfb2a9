"""Which parts of a job's results are in the signal store, and which are not."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from batch.contracts.keys import JobKeys
from batch.contracts.publication import Published
from batch.objects import Objects

_READS_AT_ONCE = 16


def unpublished(job: str, objects: Objects) -> list[str]:
    """Return the parts of a job's results whose answers are not all in the store; such as are done.

    Parameters
    ----------
    job
        The job's identifier.
    objects
        The batch bucket.
    """
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
    """List the parts that are to be published, a line each, and return how many they are.

    Parameters
    ----------
    job
        The job's identifier.
    objects
        The batch bucket.
    """
    parts = unpublished(job, objects)
    lines = b"".join(json.dumps({"part": part}).encode() + b"\n" for part in parts)
    objects.write(JobKeys(job).publications, lines, content_type="application/jsonl")
    return len(parts)


def published(job: str, objects: Objects) -> Published:
    """Return what became of a job's answers in the store.

    Parameters
    ----------
    job
        The job's identifier.
    objects
        The batch bucket.
    """
    keys = objects.sizes(JobKeys(job).published)
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        return sum(map(Published.from_json, pool.map(objects.read, keys)), Published())
