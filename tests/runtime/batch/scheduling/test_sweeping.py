"""Expired files and intermediate objects are deleted in time, and nothing else is."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from batch.completion.ending import Ends
from batch.jobs.file_table import DeletionTable, FileRecord
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform, RecordTables
from batch.objects import Objects
from batch.scheduling import reconciling
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.job_records import HOUR, NOW, make_job
from tests.runtime.batch.test_every_call_fails import running


def sweep(platform: BatchPlatform, *, now: float, rounds: int = 1000) -> None:
    steps = iter([True] * rounds)
    reconciling.sweep(
        DeletionTable(platform.table),
        Objects(resources.BUCKET),
        now=now,
        has_time=lambda: next(steps, False),
    )


def end(platform: BatchPlatform, job: Job) -> Job:
    tables = RecordTables(platform.table, platform.jobs, platform.files)
    ends = Ends(tables, Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)
    ends.merge(job.id, 1, now=NOW)
    return ends.finish(job.id, now=NOW)


def put_file(platform: BatchPlatform, expires_at: int) -> FileRecord:
    record = FileRecord(
        id="file-" + "0" * 32,
        team="search",
        filename="a.jsonl",
        purpose="batch",
        size=3,
        bucket=resources.BUCKET,
        key="files/search/a",
        created_at=NOW,
        expires_at=expires_at,
    )
    Objects(resources.BUCKET).write(record.key, b"{}\n")
    platform.files.replace(record)
    return record


def test_an_expired_file_is_not_shown_although_its_object_exists(
    platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = put_file(platform_in_process, NOW + HOUR)
    api = Api(platform_in_process)
    monkeypatch.setattr(time, "time", lambda: float(NOW + HOUR - 60))
    answer = api.get(f"/v1/files/{record.id}/content")
    assert answer.status == 302
    assert "X-Amz-Expires=60&" in answer.headers["location"], "the address ends with the file"
    monkeypatch.setattr(time, "time", lambda: float(NOW + HOUR))
    assert api.get(f"/v1/files/{record.id}/content").status == 404
    assert resources.list_keys("files/") == [record.key]


def test_an_expired_file_is_deleted_and_no_other(platform_in_process: BatchPlatform) -> None:
    record = put_file(platform_in_process, NOW + HOUR)
    Objects(resources.BUCKET).write("files/search/b", b"{}")
    sweep(platform_in_process, now=NOW + HOUR - 1)
    assert resources.list_keys("files/") == [record.key, "files/search/b"]
    sweep(platform_in_process, now=NOW + HOUR)
    assert resources.list_keys("files/") == ["files/search/b"]


def test_a_file_that_is_kept_longer_is_not_deleted_at_its_first_time(
    platform_in_process: BatchPlatform,
) -> None:
    """A redrive writes the file again."""
    record = put_file(platform_in_process, NOW + HOUR)
    platform_in_process.files.replace(replace(record, expires_at=NOW + 3 * HOUR))
    sweep(platform_in_process, now=NOW + 2 * HOUR)
    assert resources.list_keys("files/") == [record.key]


def test_a_completed_job_keeps_its_files_and_nothing_that_was_needed_to_make_them(
    platform_in_process: BatchPlatform,
) -> None:
    job = running(platform_in_process, "s0", "s1", "s2")
    assert end(platform_in_process, job).state == "completed"
    sweep(platform_in_process, now=NOW + HOUR - 1)
    keys = JobKeys(job.id)
    assert resources.list_keys(keys.parts)
    sweep(platform_in_process, now=NOW + HOUR)
    left = {key.removeprefix(keys.prefix) for key in resources.list_keys(keys.prefix)}
    assert left == {
        *("request.json", "job.json", "plan.json", "invalid.jsonl", "shards.jsonl", "outcome.json"),
        *("output.jsonl", "error.jsonl"),
    }


def test_a_job_that_can_be_redriven_keeps_everything(platform_in_process: BatchPlatform) -> None:
    job = running(platform_in_process, "s0")
    assert end(platform_in_process, job).state == "failed"
    before = resources.list_keys(JobKeys(job.id).prefix)
    sweep(platform_in_process, now=NOW + 10 * HOUR)
    assert resources.list_keys(JobKeys(job.id).prefix) == before


def test_a_run_without_time_is_continued_by_the_next(platform_in_process: BatchPlatform) -> None:
    jobs = [make_job(platform_in_process) for _ in range(3)]
    for job in jobs:
        Objects(resources.BUCKET).write(JobKeys(job.id).shard("s0").chunk(0), b"{}")
        platform_in_process.jobs.move(job.id, "cancelling", before=["validating"], now=NOW)
        tables = RecordTables(platform_in_process.table, platform_in_process.jobs, platform_in_process.files)
        ends = Ends(tables, Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)
        ends.close(job.id, 1, cause="", now=NOW)
    left = [3 * 5]  # Per job a commit, and of each shard the rows of lines that never ran; of one its rest.
    while left[-1]:
        sweep(platform_in_process, now=NOW + HOUR, rounds=1)
        left.append(
            len([key for key in resources.list_keys("jobs/") if "/chunks/" in key or "/rest/" in key])
        )
        assert len(left) < 12
    assert left == sorted(left, reverse=True)
    assert len(left) > 3, "one run deletes the objects of one prefix"
