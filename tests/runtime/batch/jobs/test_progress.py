"""How far a job is: exact, never back, whoever writes it how often and in which order."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import boto3
import pytest

from batch.contracts.progress_items import JobSize, ShardProgress
from batch.contracts.shard import ShardMessage, Usage
from batch.jobs.job_table import Job, RequestCounts
from batch.jobs.settings import BatchPlatform
from batch.worker.shard_holder import ShardReports
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.job_records import NOW, make_job

SIZE = JobSize(30, 2, 0.05, 0.4)


@pytest.fixture
def job(platform_in_process: BatchPlatform) -> Job:
    job = make_job(platform_in_process)
    platform_in_process.progress.begin(job.id, SIZE, now=NOW)
    return platform_in_process.jobs.move(job.id, "in_progress", before=["validating"], now=NOW)


def report(job: Job, shard: str, *reports: ShardProgress) -> None:
    """Write as a worker does."""
    client = boto3.client("dynamodb")

    async def send() -> None:
        for each in reports:
            sender = ShardReports(client, resources.PROGRESS_TABLE, ShardMessage(job.id, shard, "token"))
            await sender.send(each)

    asyncio.run(send())


def counts(platform: BatchPlatform, job: Job) -> tuple[int, int, int]:
    found = platform.progress.of(job).counts
    return found.total, found.completed, found.failed


def test_the_shards_are_summed_up_with_the_lines_that_were_not_valid(
    platform_in_process: BatchPlatform, job: Job
) -> None:
    assert counts(platform_in_process, job) == (30, 0, 2)
    report(job, "s0", ShardProgress(1, 4, 1, usage=Usage(1_000_000, 10, 500_000)))
    report(job, "s1", ShardProgress(1, 7, 0, usage=Usage(2_000_000, 20, 500_000)))
    assert counts(platform_in_process, job) == (30, 11, 3)
    progress = platform_in_process.progress.of(job)
    assert progress.usage == Usage(3_000_000, 30, 1_000_000)
    assert progress.cost_usd == pytest.approx(3 * 0.05 + 1 * 0.4)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_reports_that_come_late_or_twice_change_nothing(
    platform_in_process: BatchPlatform, job: Job, order: tuple[int, ...]
) -> None:
    reports = [
        ShardProgress(1, 2, 0),
        ShardProgress(1, 5, 1, 1),
        ShardProgress(2, 5, 0),
        ShardProgress(2, 8, 2),
    ]
    last: list[ShardProgress] = []
    for number in order:
        report(job, "s0", reports[number], reports[number])
        last.append(max([*last[-1:], reports[number]], key=lambda each: (each.attempt, each.answered)))
        failed = last[-1].failed + SIZE.invalid
        assert counts(platform_in_process, job) == (30, last[-1].completed, failed)


def test_what_an_earlier_attempt_had_no_time_for_has_not_failed_yet(
    platform_in_process: BatchPlatform, job: Job
) -> None:
    report(job, "s0", ShardProgress(1, 6, 4, expired=3))
    assert counts(platform_in_process, job) == (30, 6, 2 + 4)
    platform_in_process.jobs.move(job.id, "expired", before=["in_progress"], now=NOW)
    again = platform_in_process.jobs.move(
        job.id, "in_progress", before=["expired"], now=NOW, changes={"attempt": 2}
    )
    assert counts(platform_in_process, again) == (30, 6, 2 + 1)


def test_a_table_that_does_not_answer_fails_no_shard(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    sender = ShardReports(boto3.client("dynamodb"), "no-such-table", ShardMessage(job.id, "s0", "token"))
    asyncio.run(sender.send(ShardProgress(1, 1)))
    assert "progress_failed" in capsys.readouterr().out


def test_the_api_shows_it_until_the_job_has_ended(platform_in_process: BatchPlatform, job: Job) -> None:
    api = Api(platform_in_process)
    report(job, "s0", ShardProgress(1, 9, 1, usage=Usage(1_000_000, 0, 0)))
    shown = api.get(f"/v1/batches/{job.id}").body
    assert shown["request_counts"] == {"total": 30, "completed": 9, "failed": 3}
    assert shown["usage"]["input_tokens"] == 1_000_000
    assert shown["cost_usd"] == pytest.approx(0.05)
    assert api.get("/v1/batches").body["data"] == [shown]
    end = {"counts": {"total": 30, "completed": 28, "failed": 2}}
    platform_in_process.jobs.move(job.id, "failed", before=["in_progress"], now=NOW, changes=end)
    shown = api.get(f"/v1/batches/{job.id}").body
    assert shown["request_counts"] == {"total": 30, "completed": 28, "failed": 2}


def test_ten_thousand_shards_are_read_in_a_few_pages(job: Job) -> None:
    """DynamoDB ends a page at 1 MB of items; their names and values are what counts."""
    progress = ShardProgress(12, 49_999, 49_999, 49_999, Usage(8_000_000, 8_000_000, 8_000_000))
    item: dict[str, Any] = progress.write(job.id, "000123-2-004", now=NOW)["Item"]
    size = sum(len(name) + len(next(iter(value.values()))) for name, value in item.items())
    assert 10_000 * size < 3 * 2**20


def test_nothing_is_known_of_a_job_that_is_not_planned(platform_in_process: BatchPlatform) -> None:
    assert platform_in_process.progress.of(make_job(platform_in_process)).counts == RequestCounts()
