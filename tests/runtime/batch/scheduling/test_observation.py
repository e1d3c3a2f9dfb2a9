"""Open jobs are counted by queue, and how much of its time the oldest that waits has left."""

from __future__ import annotations

import json
from typing import cast

import pytest

from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.scheduling.admissions import Admission, AdmissionTable
from batch.scheduling.observation import Backlog, observe, report
from batch.scheduling.reconciling import read_open_jobs
from tests.runtime.batch.job_records import HOUR, NOW, make_job


def ask(admissions: AdmissionTable, job: Job, places: int | None) -> None:
    admissions.put(Admission(job.id, job.attempt, "token", 3, 0, 60.0, 1.0, places), now=NOW)


def test_jobs_are_counted_by_what_they_do(platform_in_process: BatchPlatform) -> None:
    admissions = AdmissionTable(platform_in_process.table)
    make_job(platform_in_process)
    ask(
        admissions, make_job(platform_in_process, created_at=NOW - 12 * HOUR, expires_at=NOW + 4 * HOUR), None
    )
    ask(admissions, make_job(platform_in_process, state="in_progress"), 2)
    for state in ("finalizing", "cancelling", "completed"):
        make_job(platform_in_process, state=state)
    found = observe(read_open_jobs(platform_in_process.jobs, admissions), ["nightly", "bulk"], now=NOW + HOUR)
    assert found == {
        "nightly": Backlog(
            waiting=2,
            running=1,
            ending=2,
            oldest_seconds=13 * HOUR,
            waited_percent=cast("float", pytest.approx(81.25)),
        ),
        "bulk": Backlog(),
    }


def test_a_further_attempt_waits_since_it_was_asked_for(platform_in_process: BatchPlatform) -> None:
    admissions = AdmissionTable(platform_in_process.table)
    job = make_job(
        platform_in_process,
        attempt=2,
        state="in_progress",
        times={"in_progress_at": NOW + 10 * HOUR},
        expires_at=NOW + 14 * HOUR,
    )
    ask(admissions, job, None)
    found = observe(read_open_jobs(platform_in_process.jobs, admissions), ["nightly"], now=NOW + 11 * HOUR)
    assert found["nightly"] == Backlog(waiting=1, oldest_seconds=HOUR, waited_percent=25.0)


def test_each_queue_is_a_line_and_the_run_another(capsys: pytest.CaptureFixture[str]) -> None:
    report({"nightly": Backlog(waiting=1), "bulk": Backlog()}, "chat")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["Platform"], line.get("Queue"), line.get("JobsWaiting")) for line in lines] == [
        ("chat", "nightly", 1),
        ("chat", "bulk", 0),
        ("chat", None, None),
    ]
    assert lines[-1]["SchedulerRuns"] == 1
