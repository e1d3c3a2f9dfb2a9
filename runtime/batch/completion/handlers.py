"""Functions that end jobs: `merge`, `finish` and `reject` of the state machine, and `close`.

`close` gets EventBridge's events of executions that ended otherwise
(https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html). They read the variables
``BATCH_TABLE`` and ``BATCH_BUCKET`` of `batch.jobs.settings`, and ``BATCH_PLATFORM``, the platform's name.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from batch.bus import ENDED, tell
from batch.completion.ending import Ends
from batch.embedded_metrics import emit
from batch.jobs.job import Job
from batch.jobs.settings import read_records
from batch.jobs.spending import Figures
from batch.objects import Objects

#: Of a job that broke off for a reason that is neither its own nor the time's.
_BROKEN = "internal_error"


@cache
def _ends() -> Ends:
    """Return what ends jobs; one for all events of a process."""
    bucket = os.environ["BATCH_BUCKET"]
    return Ends(read_records(os.environ), Objects(bucket), bucket, _tell)


def _tell(job: Job, figures: Figures | None) -> None:
    """Put an event of a job that has ended on the bus, once at least; write its metrics, once at most."""
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
    tell(ENDED, detail)


def _measure(job: Job, figures: Figures) -> None:
    """Write metrics of a job that has ended."""
    platform = os.environ["BATCH_PLATFORM"]
    emit(
        {
            "CompletedRequests": figures.requests,
            "FailedRequests": figures.failed,
            "InputTokens": figures.input_tokens,
            "CachedTokens": figures.cached_tokens,
            "OutputTokens": figures.output_tokens,
            "CostUsd": figures.usd,
        },
        {"Platform": platform, "Team": job.team, "Model": job.model, "Queue": job.queue},
        also_by=[["Platform", "Team"], ["Platform", "Model"]],
    )
    emit({"JobsEnded": 1}, {"Platform": platform, "State": job.state})
    emit({"JobsBroken": int(any(each.code == _BROKEN for each in job.errors))}, {"Platform": platform})


def merge(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Join what the shards of a job left.

    Parameters
    ----------
    event
        ``{"job": …, "attempt": …}``.

    Returns
    -------
    dict
        ``job`` and the number of its lines that are ``completed`` and ``failed``, of ``undone`` shards, and
        of ``publications``: parts whose answers are to be published.
    """
    outcome = _ends().merge(event["job"], int(event["attempt"]), now=int(time.time()))
    return {
        "job": event["job"],
        "completed": outcome.completed,
        "failed": outcome.failed,
        "undone": len(outcome.undone),
        "publications": _ends().list_publications(event["job"]),
    }


def finish(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """End a job whose results are merged.

    Parameters
    ----------
    event
        ``{"job": …}``.

    Returns
    -------
    dict
        ``job`` and ``state``.
    """
    job = _ends().finish(event["job"], now=int(time.time()))
    return {"job": job.id, "state": job.state}


def reject(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """End a job that will not run, by its plan.

    Parameters
    ----------
    event
        ``{"job": …}``.

    Returns
    -------
    dict
        ``job`` and ``state``.
    """
    job = _ends().reject(event["job"], now=int(time.time()))
    return {"job": job.id, "state": job.state}


def close(event: Mapping[str, Any], _context: object) -> None:
    """End a job whose execution failed, timed out or was stopped.

    Parameters
    ----------
    event
        An event of the type ``Step Functions Execution Status Change``.
    """
    detail = event["detail"]
    started = json.loads(detail["input"])
    cause = " ".join(str(detail.get(field) or "") for field in ("status", "error", "cause")).strip()
    _ends().close(started["job"], int(started["attempt"]), cause=cause, now=int(time.time()))
