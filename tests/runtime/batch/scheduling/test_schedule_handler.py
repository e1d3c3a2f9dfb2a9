"""The functions `ask` and `schedule` of the scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from batch.jobs.executions import Execution, Executions
from batch.jobs.job_table import Job, JobTable
from batch.jobs.settings import BatchPlatform
from batch.scheduling import handlers
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.place_scheduler import Scheduler
from batch.scheduling.reconciling import Reconciler
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import MAX_RESIZES_PER_RUN
from inference_contracts.batch_names import EVENT_SOURCE, JOB_ASKS_EVENT, OPEN, JobState
from tests.runtime.batch.job_records import make_job
from tests.runtime.batch.scheduling.test_scheduler import admissions, ask

__all__ = ["admissions"]


def test_the_state_machine_asks_with_what_was_planned(
    platform_in_process: BatchPlatform, admissions: AdmissionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, Any]] = []
    monkeypatch.setattr(handlers, "tell", lambda kind, detail: told.append((kind, detail)))
    for cached in (handlers._records, handlers._objects):
        cached.cache_clear()
    job = make_job(platform_in_process)
    key = JobKeys(job.id).shards
    event = {"job": job.id, "attempt": 1, "key": key, "taskToken": "token", "mayRefuse": True}
    handlers.ask(event, None)
    assert admissions.of(job) == Admission(
        job=job.id,
        attempt=1,
        task_token="token",  # noqa: S106 - a name
        shards=3,
        shards_before=0,
        # An hour of all four places.
        seconds_per_shard=4800.0,
        usd=50.0,
        lines_per_shard=10.0,
        may_refuse=True,
    )
    assert told == [("Batch Job Asks", {"job": job.id})]
    for cached in (handlers._records, handlers._objects):
        cached.cache_clear()


def test_a_job_asks_although_the_event_bus_does_not_answer(
    platform_in_process: BatchPlatform, admissions: AdmissionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler finds the job within a minute. Three failures of the bus would end the execution."""

    def tell(*_: object) -> None:
        raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": ""}}, "PutEvents")

    monkeypatch.setattr(handlers, "tell", tell)
    for cached in (handlers._records, handlers._objects, handlers._progress):
        cached.cache_clear()
    job = make_job(platform_in_process)
    event = {"job": job.id, "attempt": 1, "key": JobKeys(job.id).shards, "taskToken": "token"}
    handlers.ask(event, None)
    for cached in (handlers._records, handlers._objects, handlers._progress):
        cached.cache_clear()
    assert admissions.of(job) is not None


@pytest.mark.parametrize(
    ("event", "resizes"),
    [
        ({"source": "aws.events", "detail-type": "Scheduled Event"}, MAX_RESIZES_PER_RUN),
        ({"source": EVENT_SOURCE, "detail-type": JOB_ASKS_EVENT}, 0),
    ],
)
def test_running_jobs_change_with_the_minute_and_not_with_every_job(
    aws: dict[str, str], monkeypatch: pytest.MonkeyPatch, event: dict[str, str], resizes: int
) -> None:
    asked: list[int] = []
    compared: list[float] = []
    monkeypatch.setattr(Scheduler, "run", lambda _, __, **given: asked.append(given["resizes"]))
    monkeypatch.setattr(Reconciler, "run", lambda _, __, *, now: compared.append(now))
    monkeypatch.setenv("BATCH_QUEUE_URLS", "{}")
    for cached in (handlers._platform, handlers._records, handlers._objects):
        cached.cache_clear()
    handlers.schedule(event, None)
    for cached in (handlers._platform, handlers._records, handlers._objects):
        cached.cache_clear()
    assert asked == [resizes]
    assert bool(compared) == bool(resizes)


def test_a_run_reads_each_open_job_once(
    aws: dict[str, str],
    platform_in_process: BatchPlatform,
    admissions: AdmissionTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reconciler, scheduler and metrics share one reading: 120 running jobs are 120 reads and not 360."""
    jobs = [make_job(platform_in_process, state="finalizing") for _ in range(3)]
    for job in jobs:
        ask(admissions, job, places=1)
    listed: list[str] = []
    read: list[str] = []
    plain_list, plain_read = JobTable.in_state, AdmissionTable.of

    def in_state(table: JobTable, state: JobState) -> Any:
        listed.append(state)
        return plain_list(table, state)

    def of(table: AdmissionTable, job: Job) -> Admission | None:
        read.append(job.id)
        return plain_read(table, job)

    monkeypatch.setattr(JobTable, "in_state", in_state)
    monkeypatch.setattr(AdmissionTable, "of", of)
    for name, value in (("QUEUE_URLS", "{}"), ("CLOSE_FUNCTION", "close")):
        monkeypatch.setenv(f"BATCH_{name}", value)
    monkeypatch.setattr(Executions, "describe", lambda *_: Execution("RUNNING", "{}", 0.0, "", ""))
    caches = (handlers._platform, handlers._records, handlers._objects)
    for cached in caches:
        cached.cache_clear()
    handlers.schedule({"source": "aws.events"}, None)
    for cached in caches:
        cached.cache_clear()
    assert sorted(listed) == sorted(OPEN)
    assert sorted(read) == sorted(job.id for job in jobs)
