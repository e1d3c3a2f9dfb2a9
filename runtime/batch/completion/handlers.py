"""Functions that end jobs: `merge`, `finish` and `reject` of the state machine, and `close`.

`close` gets EventBridge's events of executions that ended otherwise
(https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html). They read the variables
``BATCH_TABLE`` and ``BATCH_BUCKET`` of `batch.jobs.settings`, and ``BATCH_PLATFORM``, the platform's name.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from batch.bus import tell
from batch.completion.ending import Ends
from batch.embedded_metrics import emit
from batch.jobs.job_table import Job
from batch.jobs.settings import read_records
from batch.jobs.spending import Figures
from batch.objects import Objects
from batch.s3_errors import repeatable
from inference_contracts import batch_names
from inference_contracts.batch_limits import JOINING_SECONDS

#: For a job that was interrupted for a reason other than its own errors or its deadline.
_BROKEN = "internal_error"


@cache
def _ends() -> Ends:
    """Return the object that ends jobs, one per process."""
    bucket = os.environ[batch_names.BUCKET]
    return Ends(read_records(os.environ), Objects(bucket), bucket, _tell)


def _tell(job: Job, figures: Figures | None) -> None:
    """Put the event of a job's end on the bus, at least once. Write its metrics, at most once."""
    if figures is not None:
        _measure(job, figures)
    detail = {
        "job": job.id,
        "team": job.team,
        "queue": job.queue,
        "model": job.model,
        "state": job.state,
        "completed": job.counts.completed,
        "failed": job.counts.failed,
        "costUsd": job.cost_usd,
    }
    tell(batch_names.JOB_ENDED_EVENT, detail)


def _measure(job: Job, figures: Figures) -> None:
    platform = {batch_names.PLATFORM_DIMENSION: os.environ[batch_names.PLATFORM]}
    emit(
        {
            batch_names.COMPLETED_REQUESTS: figures.requests,
            batch_names.FAILED_REQUESTS: figures.failed,
            batch_names.INPUT_TOKENS: figures.input_tokens,
            batch_names.CACHED_TOKENS: figures.cached_tokens,
            batch_names.OUTPUT_TOKENS: figures.output_tokens,
            batch_names.COST_USD: figures.usd,
        },
        {
            **platform,
            batch_names.TEAM_DIMENSION: job.team,
            batch_names.MODEL_DIMENSION: job.model,
            batch_names.QUEUE_DIMENSION: job.queue,
        },
        also_by=[
            [batch_names.PLATFORM_DIMENSION, batch_names.TEAM_DIMENSION],
            [batch_names.PLATFORM_DIMENSION, batch_names.MODEL_DIMENSION],
            [batch_names.PLATFORM_DIMENSION, batch_names.TEAM_DIMENSION, batch_names.MODEL_DIMENSION],
        ],
    )
    emit(
        {batch_names.JOBS_ENDED: 1},
        {**platform, batch_names.STATE_DIMENSION: job.state},
    )
    broken = any(each.code == _BROKEN for each in job.errors)
    emit({batch_names.JOBS_BROKEN: int(broken)}, platform)


@repeatable
def merge(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Join the results of a job's shards.

    event: ``{"job": …, "attempt": …, "mayContinue": …}``. An execution that began before an upgrade does not
        call this function again, so it gets all the time there is.
    Returns: ``job``, whether its results are ``merged``, and the number of ``publications``: parts whose
        answers must be published. If they are not merged, the next call continues.
    """
    has_time = _time() if event.get("mayContinue") else lambda: True
    outcome = _ends().merge(event["job"], int(event["attempt"]), now=int(time.time()), has_time=has_time)
    publications = 0 if outcome is None else _ends().list_publications(event["job"])
    return {"job": event["job"], "merged": outcome is not None, "publications": publications}


def _time() -> Callable[[], bool]:
    """Return a function that tells whether this call still has time to join results."""
    end = time.monotonic() + JOINING_SECONDS
    return lambda: time.monotonic() < end


@repeatable
def finish(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """End a job whose results are merged.

    Returns: ``job`` and ``state``.
    """
    job = _ends().finish(event["job"], now=int(time.time()))
    return {"job": job.id, "state": job.state}


@repeatable
def reject(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """End a job that its plan refuses.

    Returns: ``job`` and ``state``.
    """
    job = _ends().reject(event["job"], now=int(time.time()))
    return {"job": job.id, "state": job.state}


def close(event: Mapping[str, Any], _context: object) -> None:
    """End a job whose execution failed, timed out or was stopped.

    event: An event of the type ``Step Functions Execution Status Change``. Events of a map's child executions
        are ignored: their input names no attempt. EventBridge leaves out a large input.
    """
    detail = event["detail"]
    started = json.loads(detail.get("input") or "{}")
    if "attempt" not in started:
        return
    _ends().close(
        started["job"], int(started["attempt"]), cause=_cause(detail), now=int(time.time()), has_time=_time()
    )


def _cause(detail: Mapping[str, Any]) -> str:
    """Return why an execution ended, for people.

    Lambda's cause is JSON with a stack trace
    (https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html).
    """
    cause = str(detail.get("cause") or "")
    with suppress(ValueError, TypeError, KeyError):
        cause = json.loads(cause)["errorMessage"]
    return " ".join(str(each) for each in (detail.get("status"), detail.get("error"), cause) if each)
