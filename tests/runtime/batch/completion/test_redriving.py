"""A failed or expired job continues with its unfinished requests at each redrive. Other jobs do not."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from batch.completion.ending import Ends
from batch.completion.redriving import NotRedrivableError, Redriver
from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardDone, Usage
from batch.jobs.job_table import Job, JobTable
from batch.jobs.record_table import StateConflictError
from batch.jobs.settings import BatchPlatform, read_records
from batch.objects import Objects
from batch.preparation.planning import Plan, PlanProblem
from batch.scheduling import handlers
from batch.scheduling.admissions import AdmissionTable
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.job_records import HOUR, NOW, make_job

LATER = NOW + 30 * HOUR


@pytest.fixture
def redriver(platform_in_process: BatchPlatform) -> Redriver:
    platform = platform_in_process
    return Redriver(platform.jobs, Objects(resources.BUCKET), platform.executions)


@pytest.fixture
def ends(platform_in_process: BatchPlatform) -> Ends:
    return Ends(read_records(os.environ), Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)


def broken_off(platform: BatchPlatform, ends: Ends, *done: str, now: int = NOW) -> Job:
    """A job of three shards of which these were done when it ended."""
    job = make_job(platform)
    description = JobDescription(
        job.id, job.team, job.model, job.endpoint, float(job.expires_at), ("s3://a/",)
    )
    Objects(resources.BUCKET).write(JobKeys(job.id).description, description.to_json().encode())
    platform.jobs.move(job.id, "in_progress", before=["validating"], now=NOW)
    do(job, *done)
    ended = ends.close(job.id, 1, cause="FAILED", now=now)
    assert ended is not None
    return ended


def do(job: Job, *shards: str) -> None:
    objects = Objects(resources.BUCKET)
    for shard in shards:
        keys = JobKeys(job.id).shard(shard)
        objects.write(keys.output, f'{{"custom_id":"{shard}"}}\n'.encode() * 10)
        objects.write(keys.error, b"")
        objects.write(keys.done, ShardDone(shard, 10, 0, 10, Usage(100, 50, 0)).to_json().encode())


def undone(job: Job) -> list[str]:
    lines = resources.read_object(JobKeys(job.id).undone(job.attempt)).splitlines()
    return [json.loads(line)["shard"] for line in lines]


@pytest.mark.parametrize("ended_at", [NOW, NOW + 24 * HOUR], ids=["failed", "expired"])
def test_the_next_attempt_has_what_is_not_done_and_the_time_of_the_first(
    redriver: Redriver,
    ends: Ends,
    platform_in_process: BatchPlatform,
    aws: dict[str, str],
    ended_at: int,
) -> None:
    job = broken_off(platform_in_process, ends, "s1", now=ended_at)
    assert job.state == ("failed" if ended_at == NOW else "expired")
    again = redriver.redrive(job, now=LATER)
    assert (again.state, again.attempt, again.expires_at) == ("in_progress", 2, LATER + 24 * HOUR)
    assert (again.errors, again.output_file_id) == ((), None)
    assert undone(again) == ["s0", "s2"]
    written = JobDescription.from_json(resources.read_object(JobKeys(job.id).description))
    assert (written.deadline, written.data_prefixes) == (again.expires_at, ("s3://a/",))
    [execution] = resources.executions(aws)
    assert (execution["name"], execution["input"]) == (f"{job.id}-2", {"job": job.id, "attempt": 2})


def test_asking_again_is_the_same_attempt_also_where_the_first_time_broke_off(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform, aws: dict[str, str]
) -> None:
    job = broken_off(platform_in_process, ends, "s1")
    begun = redriver._begin(job, LATER)  # And nothing after it.
    again = redriver.redrive(begun, now=LATER + 9)
    redriver.redrive(again, now=LATER + 99)
    assert (again.attempt, again.expires_at) == (2, LATER + 24 * HOUR)
    assert [each["name"] for each in resources.executions(aws)] == [f"{job.id}-2"]


def test_what_the_attempt_reads_is_there_before_anybody_can_start_it(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = broken_off(platform_in_process, ends, "s1")
    seen: list[str] = []

    def look(*_: object, **__: object) -> Job:
        seen.extend(undone(replace(job, attempt=2)))
        raise StateConflictError(None)

    monkeypatch.setattr(JobTable, "move", look)
    with pytest.raises(NotRedrivableError):
        redriver.redrive(job, now=LATER)
    assert seen == ["s0", "s2"]


def test_of_two_that_redrive_at_once_one_is_told(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = broken_off(platform_in_process, ends)
    redriver.redrive(job, now=LATER)
    with pytest.raises(NotRedrivableError, match="at the same time"):
        redriver.redrive(job, now=LATER)


def test_the_files_are_those_of_the_whole_job_at_its_end(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = broken_off(platform_in_process, ends, "s1")
    again = redriver.redrive(job, now=LATER)
    do(again, "s0", "s2")
    ends.merge(job.id, 2, now=LATER)
    ended = ends.finish(job.id, now=LATER)
    assert (ended.state, ended.counts.completed, ended.errors) == ("completed", 30, ())
    assert ended.output_file_id is not None
    record = platform_in_process.files.get(ended.output_file_id, team="search", now=LATER)
    assert record is not None
    content = resources.read_object(record.key)
    assert (content.count(b"\n"), record.size) == (30, len(content))


def test_a_job_that_is_run_again_was_never_at_its_end(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = broken_off(platform_in_process, ends, "s1", now=NOW + HOUR)
    assert set(job.times) == {"in_progress_at", "failed_at"}
    again = redriver.redrive(job, now=LATER)
    assert again.times == {"in_progress_at": LATER}
    shown = Api(platform_in_process).get(f"/v1/batches/{job.id}").body
    assert [shown[f"{state}_at"] for state in ("in_progress", "finalizing", "failed", "expired")] == [
        LATER,
        None,
        None,
        None,
    ]
    assert (shown["created_at"], shown["expires_at"]) == (NOW, LATER + 24 * HOUR)


def test_lines_that_the_deadline_overtook_in_a_shard_that_is_done_are_run_again(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = broken_off(platform_in_process, ends)
    objects, keys = Objects(resources.BUCKET), JobKeys(job.id).shard("s1")
    again = redriver.redrive(job, now=LATER)
    do(again, "s0", "s1", "s2")
    rows = [f'{{"id":"batch_req_{job.id}_s1_{ordinal}"}}\n'.encode() for ordinal in range(8, 10)]
    objects.write(keys.output, b'{"id":"batch_req_x_s1_0"}\n' * 8)
    objects.write(keys.expired, b"".join(rows))
    objects.write(keys.done, ShardDone("s1", 8, 2, 8, Usage(100, 50, 0), expired=2).to_json().encode())
    ends.merge(job.id, 2, now=LATER)
    ended = ends.finish(job.id, now=LATER + 24 * HOUR)
    assert (ended.state, ended.counts.completed, ended.counts.failed) == ("expired", 28, 2)
    assert ended.errors[0].code == "batch_expired"
    third = redriver.redrive(ended, now=LATER + 30 * HOUR)
    assert undone(third) == ["s1"]
    assert JobDescription.from_json(resources.read_object(JobKeys(job.id).description)).attempt == 3
    turn = keys.next_turn
    objects.write(turn.output, b"".join(rows))
    objects.write(turn.error, b"")
    objects.write(turn.done, ShardDone("s1", 2, 0, 3, Usage(20, 0, 0)).to_json().encode())
    ends.merge(job.id, 3, now=LATER + 31 * HOUR)
    ended = ends.finish(job.id, now=LATER + 31 * HOUR)
    assert (ended.state, ended.counts.completed, ended.counts.failed) == ("completed", 30, 0)
    assert ended.usage == Usage(320, 150, 0)
    output = resources.read_object(JobKeys(job.id).output)
    assert output.count(b"\n") == 30
    assert ended.error_file_id is None


def test_a_job_that_broke_off_when_all_was_done_is_merged_by_way_of_one_shard(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = broken_off(platform_in_process, ends, "s0", "s1", "s2")
    assert undone(redriver.redrive(job, now=LATER)) == ["s2"]


def test_each_attempt_counts_from_the_first(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    second = redriver.redrive(broken_off(platform_in_process, ends, "s1"), now=LATER)
    do(second, "s0")
    ended = ends.close(second.id, 2, cause="FAILED", now=LATER + HOUR)
    assert ended is not None
    third = redriver.redrive(ended, now=LATER + 40 * HOUR)
    assert (third.attempt, third.expires_at) == (3, LATER + 64 * HOUR)
    assert undone(third) == ["s2"]


def test_an_attempt_asks_for_the_places_of_what_is_left(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    for cached in (handlers._records, handlers._objects):
        cached.cache_clear()
    again = redriver.redrive(broken_off(platform_in_process, ends, "s1"), now=LATER)
    key = JobKeys(again.id).undone(2)
    handlers.ask({"job": again.id, "attempt": 2, "key": key, "taskToken": "token"}, None)
    admission = AdmissionTable(read_records(os.environ).table).of(again)
    assert admission is not None
    assert (admission.shards, admission.shards_before) == (2, 1)
    assert admission.usd == pytest.approx(50 * 2 / 3)
    for cached in (handlers._records, handlers._objects):
        cached.cache_clear()


def test_a_job_that_was_refused_or_never_planned_is_to_be_submitted_again(
    redriver: Redriver, ends: Ends, platform_in_process: BatchPlatform
) -> None:
    refused = broken_off(platform_in_process, ends)
    objects, keys = Objects(resources.BUCKET), JobKeys(refused.id)
    plan = Plan.from_json(resources.read_object(keys.plan))
    problem = PlanProblem("over_budget", "about $500")
    objects.write(keys.plan, replace(plan, problems=(problem,)).to_json().encode())
    with pytest.raises(
        NotRedrivableError, match=r"refused \(about \$500\): correct that and submit it again"
    ):
        redriver.redrive(refused, now=LATER)
    platform_in_process.storage.delete([keys.plan, keys.shards])
    with pytest.raises(NotRedrivableError, match="submit it again"):
        redriver.redrive(refused, now=LATER)
    assert platform_in_process.jobs.get(refused.id) == refused


def test_the_api_redrives_for_the_team_and_refuses_what_did_not_fail(
    ends: Ends, platform_in_process: BatchPlatform
) -> None:
    api = Api(platform_in_process)
    job = broken_off(platform_in_process, ends, "s1")
    path = f"/v1/batches/{job.id}/redrive"
    assert Api(platform_in_process, resources.ADVERTS).post(path, {}).status == 404
    answer = api.post(path, {})
    assert (answer.status, answer.body["status"], answer.body["errors"]) == (200, "in_progress", None)
    assert api.post(path, {}).body == answer.body
    fresh = make_job(platform_in_process)
    cancelled = make_job(platform_in_process, state="cancelled")
    for other in (fresh, cancelled):
        refused = api.post(f"/v1/batches/{other.id}/redrive", {})
        assert (refused.status, refused.error["code"]) == (400, "not_redrivable")
        assert f"status '{other.state}'" in refused.error["message"]
