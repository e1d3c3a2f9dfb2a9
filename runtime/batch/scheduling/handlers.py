"""Functions `ask`, by which the state machine asks for places, and `schedule`, which gives them.

`ask` reads the variables ``BATCH_TABLE``, ``BATCH_PROGRESS_TABLE`` and ``BATCH_BUCKET``. `schedule` runs
every minute, and when a job asks for places or ends. Every minute it also compares the jobs with their
executions. In addition to the variables of `batch.jobs.settings`, it reads ``BATCH_QUEUE_URLS``, a JSON
object with the address of each model's queue of shards, ``BATCH_CLOSE_FUNCTION``, the name of the function
`close`, and ``BATCH_CEILINGS``, the models whose places the capacity shift limits, with commas.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from batch.bus import tell
from batch.contracts.progress_items import JobSize
from batch.contracts.request import JobRequest
from batch.jobs.door_spending import DoorSpending, read_door_spending
from batch.jobs.file_table import DeletionTable
from batch.jobs.job_progress import ProgressTable
from batch.jobs.settings import BatchPlatform, RecordTables, read_platform, read_progress, read_records
from batch.jobs.spending import SpendingTable
from batch.objects import Objects
from batch.preparation.planning import Plan
from batch.s3_errors import repeatable
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.ceilings import Ceilings
from batch.scheduling.measuring import SpeedMeter, SpeedTable
from batch.scheduling.observation import observe, report
from batch.scheduling.place_scheduler import Scheduler, turns_done
from batch.scheduling.reconciling import Reconciler, read_open_jobs, sweep
from inference_contracts import batch_names
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import MAX_RESIZES_PER_RUN
from inference_contracts.batch_names import EVENT_SOURCE, JOB_ASKS_EVENT
from inference_contracts.units import SECONDS_PER_HOUR

_logger = logging.getLogger(__name__)
#: Time for deletions in a run, in which S3 deletes more than a hundred thousand objects.
_SWEEP_SECONDS = 30


@cache
def _platform() -> BatchPlatform:
    return read_platform(os.environ)


@cache
def _records() -> RecordTables:
    return read_records(os.environ)


@cache
def _progress() -> ProgressTable:
    return read_progress(os.environ)


@cache
def _objects() -> Objects:
    return Objects(os.environ[batch_names.BUCKET])


@cache
def _door() -> DoorSpending | None:
    return read_door_spending(os.environ)


def _models_with_ceilings() -> frozenset[str]:
    return frozenset(filter(None, os.environ.get(batch_names.CEILINGS, "").split(",")))


@repeatable
def ask(event: Mapping[str, Any], _context: object) -> None:
    """Ask for places for an attempt at a job. The execution waits until its token is answered.

    event: ``{"job": …, "attempt": …, "key": …, "taskToken": …, "mayRefuse": …}``. The key names the list of
        shards to run. An execution that began before an upgrade may not be refused.
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
        # Hours that all places together need for all shards.
        seconds_per_shard=plan.hours * SECONDS_PER_HOUR * request.capacity.places / max(plan.shards, 1),
        usd=plan.usd * shards / max(plan.shards, 1),
        lines_per_shard=(plan.requests - plan.invalid) / max(plan.shards, 1),
        may_refuse=bool(event.get("mayRefuse")),
    )
    size = JobSize(
        plan.requests,
        plan.invalid,
        request.capacity.usd_per_million_input_tokens,
        request.capacity.usd_per_million_output_tokens,
    )
    _progress().begin(keys.job, size, now=time.time())
    AdmissionTable(_records().table).put(admission, now=int(time.time()))
    try:
        tell(JOB_ASKS_EVENT, {"job": keys.job})
    except (BotoCoreError, ClientError, RuntimeError) as error:
        # The event only saves time: the scheduler finds the job within a minute. No job fails because of it.
        _logger.warning("%s: the scheduler was not told: %s", keys.job, error)


def schedule(event: Mapping[str, Any], _context: object) -> None:
    """Allot the places of all models, then report the state of the queues.

    event: Reason of the call. If it is an event of a job, running jobs keep their places: those change once
        per minute.
    """
    platform, table, now = _platform(), _records().table, time.time()
    is_every_minute = event.get("source") != EVENT_SOURCE
    configuration, admissions = platform.configuration, AdmissionTable(table)
    open_jobs = read_open_jobs(platform.jobs, admissions)
    if is_every_minute:
        reconciler = Reconciler(jobs=platform.jobs, table=table, executions=platform.executions, close=_close)
        reconciler.run(open_jobs, now=now)
        meter = SpeedMeter(
            progress=platform.progress,
            admissions=admissions,
            speeds=SpeedTable(table),
            places=configuration.places,
        )
        open_jobs = meter.run(open_jobs, now=now)
    Scheduler(
        configuration=configuration,
        jobs=platform.jobs,
        admissions=admissions,
        speeds=SpeedTable(table),
        ceilings=Ceilings(table, _models_with_ceilings()),
        spending=SpendingTable(table),
        door=_door(),
        objects=_objects(),
        executions=platform.executions,
        step_functions=boto3.client("stepfunctions"),
        queue_urls=json.loads(os.environ[batch_names.QUEUE_URLS]),
    ).run(open_jobs, now=now, resizes=MAX_RESIZES_PER_RUN if is_every_minute else 0)
    queues = [queue.name for queue in configuration.queues]
    report(observe(open_jobs, queues, now=now), configuration.platform)
    if is_every_minute:
        end = time.monotonic() + _SWEEP_SECONDS
        sweep(DeletionTable(table), _objects(), now=now, has_time=lambda: time.monotonic() < end)


def _close(event: Mapping[str, Any]) -> None:
    """Have the function `close` end a job. Lambda keeps the event and repeats a failed call."""
    boto3.client("lambda").invoke(
        FunctionName=os.environ[batch_names.CLOSE_FUNCTION],
        InvocationType="Event",
        Payload=json.dumps(event),
    )
