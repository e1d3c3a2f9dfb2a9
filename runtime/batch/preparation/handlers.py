"""Functions of the state machine: `segment`, `check` and `plan`.

The event of each contains the job's identifier. Each reads the job's request from the batch bucket, whose
name is in the environment variable ``BATCH_BUCKET``. `check` also reads the limits of requests from the file
that ``BATCH_CONFIGURATION`` names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cache
from typing import Any

from batch.contracts.request import Input, JobRequest
from batch.jobs.settings import read_configuration
from batch.objects import InputFaultError, Objects
from batch.preparation.checking import check_segment
from batch.preparation.input_text import UnreadableInputError
from batch.preparation.parquet import ParquetReader
from batch.preparation.planning import plan_job
from batch.preparation.segments import Segment, Span, byte_ranges, number, row_group_ranges
from batch.s3_errors import repeatable
from inference_contracts import batch_names
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_keys import JobKeys


@cache
def _objects() -> Objects:
    """Return the batch bucket. The process uses one client for all events."""
    return Objects(os.environ[batch_names.BUCKET])


@cache
def _configuration() -> Configuration:
    return read_configuration(os.environ)


def _request(job: str) -> JobRequest:
    """Return the request of a job."""
    return JobRequest.from_json(_objects().read(JobKeys(job).request))


@repeatable
def segment(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Cut a job's inputs into segments.

    Returns: ``job``, the number of ``segments`` and the ``key`` of their list.
    """
    keys = JobKeys(event["job"])
    request = _request(keys.job)
    with closing(ParquetReader()) as reader:
        segments = list(number(_parts(each, reader) for each in request.inputs))
    content = b"".join(each.to_json().encode() + b"\n" for each in segments)
    _objects().write(keys.segments, content, content_type="application/jsonl")
    return {"job": keys.job, "segments": len(segments), "key": keys.segments}


def _parts(each: Input, reader: ParquetReader) -> tuple[str, Iterable[Span]]:
    """Return the ETag and the ranges of an input."""
    try:
        size, etag = _objects().size(each.bucket, each.key)
    except InputFaultError:
        # The check of this range finds the same error, and writes it where the job's team can read it.
        return "", [(0, 0)]
    if each.format != "parquet":
        return etag, byte_ranges(each, size)
    try:
        groups = reader.row_groups(_objects().part_of(each.bucket, each.key, etag=etag), size)
    except (InputFaultError, UnreadableInputError):
        return etag, [(0, 0)]  # The same.
    return etag, row_group_ranges(groups)


@repeatable
def check(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Check one segment.

    event: ``{"job": …, "segment": {…}}``, with an entry of the list of segments.
    Returns: ``lines`` and ``invalid`` of the segment.
    """
    request = _request(event["job"])
    limits = _configuration().request_limits(request.model)
    report = check_segment(request, Segment(**event["segment"]), _objects(), limits)
    return {"lines": report.lines, "invalid": report.invalid}


@repeatable
def plan(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Plan a job after all segments are checked.

    event: ``{"job": …, "segments": …}``, with the number of segments.
    Returns: ``job``, ``accepted``, the number of ``lines`` and ``shards``, and the ``key`` of the list of
        shards.
    """
    keys = JobKeys(event["job"])
    result = plan_job(_request(keys.job), int(event["segments"]), _objects())
    return {
        "job": keys.job,
        "accepted": not result.problems,
        "lines": result.lines,
        "shards": result.shards,
        "key": keys.shards,
    }
