"""Functions: `ask`, by which the state machine asks for places, and `schedule`, every minute.

Beside the variables of `batch.jobs.settings` they read ``BATCH_QUEUE_URLS``, a JSON object with the address
of each model's queue of shards.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import boto3

from batch.contracts.keys import JobKeys
from batch.jobs.settings import Platform, read_platform
from batch.jobs.table import Table
from batch.objects import Objects
from batch.preparation.planning import Plan
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.scheduler import Scheduler

_SECONDS_PER_HOUR = 3600


@cache
def _platform() -> Platform:
    """Return what the functions work with; one for all events of a process."""
    return read_platform(os.environ)


@cache
def _objects() -> Objects:
    """Return the batch bucket."""
    return Objects(os.environ["BATCH_BUCKET"])


def _admissions() -> AdmissionTable:
    """Return the admissions."""
    resource: Any = boto3.resource("dynamodb")
    return AdmissionTable(Table(resource.Table(os.environ["BATCH_TABLE"])))


def ask(event: Mapping[str, Any], _context: object) -> None:
    """Ask for places for an attempt at a job; it goes on when it is told to by its token.

    Parameters
    ----------
    event
        ``{"job": …, "attempt": …, "key": …, "taskToken": …}``, the key of the shards that it is to do.
    """
    keys = JobKeys(event["job"])
    plan = Plan.from_json(_objects().read(keys.plan))
    shards = _objects().read(event["key"]).count(b"\n")
    job = _platform().jobs.get(keys.job)
    if job is None:
        raise LookupError(f"{keys.job}: there is no such job")
    queue = _platform().configuration.queue(job.queue)
    places = queue.capacity.places if queue else 1
    admission = Admission(
        job=keys.job,
        attempt=int(event["attempt"]),
        task_token=event["taskToken"],
        shards=shards,
        shards_before=plan.shards - shards,
        # All places together need so many hours for all shards.
        seconds_per_shard=plan.hours * _SECONDS_PER_HOUR * places / max(plan.shards, 1),
        usd=plan.usd * shards / max(plan.shards, 1),
    )
    _admissions().put(admission, now=int(time.time()))
    schedule({}, None)


def schedule(_event: Mapping[str, Any], _context: object) -> None:
    """Allot the places of all models anew."""
    platform = _platform()
    Scheduler(
        configuration=platform.configuration,
        jobs=platform.jobs,
        admissions=_admissions(),
        objects=_objects(),
        executions=platform.executions,
        step_functions=boto3.client("stepfunctions"),
        queue_urls=json.loads(os.environ["BATCH_QUEUE_URLS"]),
    ).run(now=time.time())
