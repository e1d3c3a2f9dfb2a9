"""Functions: `ask`, by which the state machine asks for places, and `schedule`, which gives them.

`ask` reads the variables ``BATCH_TABLE``, ``BATCH_PROGRESS_TABLE`` and ``BATCH_BUCKET``. `schedule` runs
every minute and when a job asks or has ended; beside the variables of `batch.jobs.settings` it reads
``BATCH_QUEUE_URLS``, a JSON object with the address of each model's queue of shards.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import boto3

from batch.bus import ASKS, SOURCE, tell
from batch.contracts.keys import JobKeys
from batch.contracts.progress import JobSize
from batch.contracts.request import JobRequest
from batch.jobs.progress import ProgressTable
from batch.jobs.settings import Platform, Records, read_platform, read_progress, read_records
from batch.jobs.spending import SpendingTable
from batch.objects import Objects
from batch.preparation.planning import Plan
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.observation import observe, report
from batch.scheduling.scheduler import MOST_RESIZES, Scheduler, turns_done

_SECONDS_PER_HOUR = 3600


@cache
def _platform() -> Platform:
    """Return what `schedule` works with; one for all events of a process."""
    return read_platform(os.environ)


@cache
def _records() -> Records:
    """Return the records."""
    return read_records(os.environ)


@cache
def _progress() -> ProgressTable:
    """Return how far jobs are."""
    return read_progress(os.environ)


@cache
def _objects() -> Objects:
    """Return the batch bucket."""
    return Objects(os.environ["BATCH_BUCKET"])


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
    request = JobRequest.from_json(_objects().read(keys.request))
    admission = Admission(
        job=keys.job,
        attempt=int(event["attempt"]),
        task_token=event["taskToken"],
        shards=shards,
        shards_before=turns_done(_objects().sizes(keys.parts)),
        # All places together need so many hours for all shards.
        seconds_per_shard=plan.hours * _SECONDS_PER_HOUR * request.capacity.places / max(plan.shards, 1),
        usd=plan.usd * shards / max(plan.shards, 1),
    )
    size = JobSize(
        plan.requests,
        plan.invalid,
        request.capacity.usd_per_million_input_tokens,
        request.capacity.usd_per_million_output_tokens,
    )
    _progress().begin(keys.job, size, now=time.time())
    AdmissionTable(_records().table).put(admission, now=int(time.time()))
    tell(ASKS, {"job": keys.job})


def schedule(event: Mapping[str, Any], _context: object) -> None:
    """Allot the places of all models anew, then say how that leaves the queues.

    Parameters
    ----------
    event
        Why. Where it is a job's, none that runs gets other places: those change once a minute.
    """
    platform, table, now = _platform(), _records().table, time.time()
    configuration, admissions = platform.configuration, AdmissionTable(table)
    Scheduler(
        configuration=configuration,
        jobs=platform.jobs,
        admissions=admissions,
        spending=SpendingTable(table),
        objects=_objects(),
        executions=platform.executions,
        step_functions=boto3.client("stepfunctions"),
        queue_urls=json.loads(os.environ["BATCH_QUEUE_URLS"]),
    ).run(now=now, resizes=0 if event.get("source") == SOURCE else MOST_RESIZES)
    queues = [queue.name for queue in configuration.queues]
    report(observe(platform.jobs, admissions, queues, now=now), configuration.platform)
