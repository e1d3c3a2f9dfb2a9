"""A job ends once, with everything that was done, whatever ended it."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, cast

import pytest

from batch.completion import handlers
from batch.completion.ending import Ends
from batch.contracts.shard import ShardDone, ShardLine, Usage
from batch.jobs.job_table import Job, RequestCounts
from batch.jobs.record_table import StateConflictError
from batch.jobs.settings import BatchPlatform, read_records
from batch.jobs.spending import Figures, SpendingTable, month_of
from batch.objects import Objects
from batch.preparation.planning import Plan, PlanProblem
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import JobState
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import HOUR, NOW, make_job


@pytest.fixture
def told() -> list[tuple[Job, Figures | None]]:
    return []


@pytest.fixture
def ends(platform_in_process: BatchPlatform, told: list[tuple[Job, Figures | None]]) -> Ends:
    def tell(job: Job, figures: Figures | None) -> None:
        told.append((job, figures))

    return Ends(read_records(os.environ), Objects(resources.BUCKET), resources.BUCKET, tell)


def spent(platform: BatchPlatform, now: int = NOW) -> dict[tuple[str, str], Figures]:
    found = SpendingTable(platform.table).of("search", month_of(now))
    return {(each.model, each.queue): each.figures for each in found}


def running(platform: BatchPlatform, **changes: Any) -> Job:
    job = make_job(platform, **changes)
    return platform.jobs.move(job.id, "in_progress", before=["validating"], now=NOW)


def do(job: Job, *shards: str) -> None:
    objects = Objects(resources.BUCKET)
    for shard in shards:
        keys = JobKeys(job.id).shard(shard)
        objects.write(keys.output, f'{{"custom_id":"{shard}"}}\n'.encode() * 9)
        objects.write(keys.error, f'{{"custom_id":"{shard}-bad"}}\n'.encode())
        done = ShardDone(shard, 9, 1, 11, Usage(1_000_000, 500_000, 100_000))
        objects.write(keys.done, done.to_json().encode())


def write_lines(job: Job, shard: str) -> None:
    """Write the ten lines of a shard."""
    lines = [
        ShardLine(ordinal=number, line=number + 1, custom_id=f"{shard}-{number}", tokens=1, body={})
        for number in range(10)
    ]
    content = "".join(line.to_json() + "\n" for line in lines).encode()
    Objects(resources.BUCKET).write(JobKeys(job.id).shard(shard).lines, content)


def commit(job: Job, shard: str, *tokens: int) -> None:
    """Leave answers in the log of a shard that is not done, and a line that failed."""
    rows: list[dict[str, object]] = [
        {"response": {"status_code": 200, "body": {"usage": usage(each)}}, "error": None} for each in tokens
    ]
    failed: dict[str, object] = {"response": {"status_code": 400, "body": {"usage": usage(9)}}, "error": None}
    broken: dict[str, object] = {"response": None, "error": {"code": "endpoint_error", "message": ""}}
    lines = [
        json.dumps({"id": f"batch_req_{job.id}_{shard}_{ordinal}", **row}).encode() + b"\n"
        for ordinal, row in enumerate((*rows, failed, broken))
    ]
    for number, content in enumerate((lines[0], b"".join(lines[1:]))):
        Objects(resources.BUCKET).write(JobKeys(job.id).shard(shard).chunk(number), content)


def usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "completion_tokens": tokens // 100}


def test_a_job_whose_shards_are_all_done_is_completed(
    ends: Ends, platform_in_process: BatchPlatform, told: list[tuple[Job, Figures | None]]
) -> None:
    job = running(platform_in_process)
    do(job, "s0", "s1", "s2")
    ends.merge(job.id, 1, now=NOW)
    ended = ends.finish(job.id, now=NOW + 5)
    assert (ended.state, ended.counts) == ("completed", RequestCounts(30, 27, 3))
    assert ended.usage == Usage(3_000_000, 1_500_000, 300_000)
    assert ended.cost_usd == pytest.approx(3 * 0.05 + 0.3 * 0.4)
    assert ended.times == {"in_progress_at": NOW, "finalizing_at": NOW, "completed_at": NOW + 5}
    for identifier, rows in ((ended.output_file_id, 27), (ended.error_file_id, 3)):
        assert identifier is not None
        record = platform_in_process.files.get(identifier, team="search", now=NOW)
        assert record is not None
        assert resources.read_object(record.key).count(b"\n") == rows
    assert [job.state for job, _ in told] == ["completed"]
    figures = Figures(1, 27, 3, 3_000_000, 1_500_000, 300_000, cast("float", pytest.approx(0.27)))
    assert told[0][1] == figures
    assert spent(platform_in_process) == {("qwen3-8b", "nightly"): figures}


def test_files_of_a_job_expire_when_it_asked_for_that(ends: Ends, platform_in_process: BatchPlatform) -> None:
    job = running(platform_in_process, output_seconds=7200)
    do(job, "s0", "s1", "s2")
    ends.merge(job.id, 1, now=NOW)
    ended = ends.finish(job.id, now=NOW + 5)
    for identifier in (ended.output_file_id, ended.error_file_id):
        assert identifier is not None
        last = NOW + 5 + 7200 - 1
        assert platform_in_process.files.get(identifier, team="search", now=last) is not None
        assert platform_in_process.files.get(identifier, team="search", now=last + 1) is None


def test_ending_twice_is_ending_once(
    ends: Ends, platform_in_process: BatchPlatform, told: list[tuple[Job, Figures | None]]
) -> None:
    job = running(platform_in_process)
    do(job, "s0", "s1", "s2")
    ends.merge(job.id, 1, now=NOW)
    ends.merge(job.id, 1, now=NOW)
    assert [ends.finish(job.id, now=NOW).state for _ in range(2)] == ["completed", "completed"]
    assert ends.close(job.id, 1, cause="ABORTED", now=NOW) is None
    # Who asks again cannot know whether the first told anybody; what it came to is told once.
    assert len([figures for _, figures in told if figures is not None]) == 1
    assert spent(platform_in_process)["qwen3-8b", "nightly"].requests == 27


def test_jobs_that_end_at_once_are_all_summed_up(ends: Ends, platform_in_process: BatchPlatform) -> None:
    jobs = [running(platform_in_process) for _ in range(6)]
    for job in jobs:
        do(job, "s0")
        ends.merge(job.id, 1, now=NOW)

    def end(job: Job) -> None:
        for _ in range(2):
            ends.finish(job.id, now=NOW)

    threads = [threading.Thread(target=end, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(platform_in_process)["qwen3-8b", "nightly"].jobs == 6
    assert spent(platform_in_process)["qwen3-8b", "nightly"].requests == 6 * 9


def test_what_a_shard_had_answered_when_its_job_was_stopped_is_paid_once(
    ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = running(platform_in_process)
    do(job, "s0")
    commit(job, "s1", 400_000, 300_000)
    ended = ends.close(job.id, 1, cause="FAILED", now=NOW)
    assert ended is not None
    assert ended.usage == Usage(1_700_000, 500_000, 107_000)
    assert ended.cost_usd == pytest.approx(1.7 * 0.05 + 0.107 * 0.4)
    assert ended.counts.completed == 11, "the output file has those of shards that are not done too"
    again = platform_in_process.jobs.move(
        job.id, "in_progress", before=["failed"], now=NOW, changes={"attempt": 2}
    )
    do(again, "s1", "s2")
    ends.merge(job.id, 2, now=NOW)
    total = ends.finish(job.id, now=NOW)
    assert total.usage == Usage(3_000_000, 1_500_000, 300_000)
    assert spent(platform_in_process)["qwen3-8b", "nightly"] == Figures(
        1, 27, 3, 3_000_000, 1_500_000, 300_000, cast("float", pytest.approx(0.27))
    )


def test_a_job_dearer_than_its_budget_ends_as_any_other(
    ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = running(platform_in_process, budget_usd=0.01)
    do(job, "s0", "s1", "s2")
    ends.merge(job.id, 1, now=NOW)
    ended = ends.finish(job.id, now=NOW)
    assert (ended.state, ended.errors) == ("completed", ())
    assert ended.cost_usd > ended.budget_usd


def test_a_job_with_shards_undone_fails_and_keeps_what_is_done(
    ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = running(platform_in_process)
    do(job, "s1")
    ends.merge(job.id, 1, now=NOW)
    ended = ends.finish(job.id, now=NOW)
    assert ended.state == "failed"
    assert ended.counts == RequestCounts(30, 9, 21)
    assert ended.errors[0].code == "shards_failed"
    assert ended.errors[0].message.startswith("2 shards could not be completed")


def test_a_job_that_will_not_run_says_why_and_has_its_error_file(
    ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = make_job(platform_in_process)
    objects, keys = Objects(resources.BUCKET), JobKeys(job.id)
    problem = PlanProblem("over_budget", "about $5.00 for …", None)
    plan = Plan(3, 1, 0, 3, 1, 2, 3, 0.5, 5.0, (problem,))
    objects.write(keys.plan, plan.to_json().encode())
    objects.write(keys.invalid, b'{"error":{}}\n')
    ended = ends.reject(job.id, now=NOW)
    assert (ended.state, ended.errors[0].code, ended.output_file_id) == ("failed", "over_budget", None)
    assert ended.error_file_id is not None
    assert resources.read_object(keys.error) == b'{"error":{}}\n'


@pytest.mark.parametrize(
    ("before", "hours", "state", "codes"),
    [
        ("cancelling", 0, "cancelled", ([], "batch_cancelled")),
        ("cancelling", 24, "cancelled", ([], "batch_cancelled")),
        ("in_progress", 24, "expired", (["batch_expired"], "batch_expired")),
        ("in_progress", 0, "failed", (["internal_error"], "not_run")),
    ],
)
def test_what_ended_by_itself_keeps_what_is_done(
    platform_in_process: BatchPlatform,
    before: JobState,
    hours: int,
    state: str,
    codes: tuple[list[str], str],
) -> None:
    """Red if a line is neither in the output nor in the error file, or the counts do not add up."""
    job = running(platform_in_process)
    do(job, "s2")
    commit(job, "s1", 5, 6)
    for shard in ("s0", "s1"):
        write_lines(job, shard)
    if before == "cancelling":
        platform_in_process.jobs.move(job.id, before, before=["in_progress"], now=NOW)
    ends = Ends(read_records(os.environ), Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)
    ended = ends.close(job.id, 1, cause="ABORTED", now=NOW + hours * HOUR)
    assert ended is not None
    assert (ended.state, ended.counts) == (state, RequestCounts(30, 11, 19))
    assert [each.code for each in ended.errors] == codes[0]
    rows = [json.loads(row) for row in resources.read_object(JobKeys(job.id).error).splitlines()]
    unrun = [each for each in rows if (each.get("error") or {}).get("code") == codes[1]]
    assert sorted(each["custom_id"] for each in unrun) == sorted(
        [f"s0-{number}" for number in range(10)] + [f"s1-{number}" for number in range(4, 10)]
    )
    assert {each["id"] for each in unrun} >= {f"batch_req_{job.id}_s0_0", f"batch_req_{job.id}_s1_9"}
    assert len(rows) == 19


def test_lines_that_never_ran_are_listed_by_several_calls(platform_in_process: BatchPlatform) -> None:
    """Red if a large job never ends, or a line is listed twice, because one call has too little time."""
    job = running(platform_in_process)
    commit(job, "s1", 5, 6)
    for shard in ("s0", "s1", "s2"):
        write_lines(job, shard)
    platform_in_process.jobs.move(job.id, "cancelling", before=["in_progress"], now=NOW)
    ends = Ends(read_records(os.environ), Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)
    calls, ended = 0, None
    while ended is None:
        steps = iter([True])
        calls += 1
        if calls == 2:
            # A worker that was still at it. Its line is no longer one that never ran.
            row = {"id": f"batch_req_{job.id}_s0_7", "response": None, "error": {"code": "x"}}
            chunk = json.dumps(row).encode() + b"\n"
            Objects(resources.BUCKET).write(JobKeys(job.id).shard("s0").chunk(0), chunk)
        ended = ends.close(job.id, 1, cause="", now=NOW, has_time=lambda steps=steps: next(steps, False))  # type: ignore[misc]
        assert calls < 10
    assert calls > 2
    assert ended.counts == RequestCounts(30, 2, 28)
    rows = [json.loads(row) for row in resources.read_object(JobKeys(job.id).error).splitlines()]
    assert len({each["id"] for each in rows}) == len(rows) == 28


def test_a_job_ends_although_the_lines_of_a_shard_are_gone(platform_in_process: BatchPlatform) -> None:
    """Red if a job whose shard cannot be read never ends."""
    job = running(platform_in_process)
    do(job, "s0", "s2")
    ends = Ends(read_records(os.environ), Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)
    ends.merge(job.id, 1, now=NOW)
    assert ends.finish(job.id, now=NOW).counts == RequestCounts(30, 18, 12)


def test_a_job_that_breaks_off_before_it_is_planned_fails(
    ends: Ends, platform_in_process: BatchPlatform
) -> None:
    job = make_job(platform_in_process)
    for key in resources.list_keys(JobKeys(job.id).prefix):
        if key.endswith(("plan.json", "shards.jsonl")):
            platform_in_process.storage.delete([key])
    ended = ends.close(job.id, 1, cause="FAILED States.TaskFailed the input is not there", now=NOW)
    assert ended is not None
    assert ended.state == "failed"
    assert "the input is not there" in ended.errors[0].message


def test_an_attempt_that_was_replaced_changes_nothing(ends: Ends, platform_in_process: BatchPlatform) -> None:
    job = running(platform_in_process)
    platform_in_process.jobs.note(job, {"attempt": 2})
    assert ends.close(job.id, 1, cause="FAILED", now=NOW) is None
    with pytest.raises(StateConflictError):
        ends.merge(job.id, 1, now=NOW)


def test_whoever_listens_is_told_and_the_figures_are_metrics(
    aws: dict[str, str],
    platform_in_process: BatchPlatform,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BATCH_PLATFORM", "chat")
    handlers._ends.cache_clear()
    job = running(platform_in_process)
    do(job, "s0", "s1", "s2")
    assert handlers.merge({"job": job.id, "attempt": 1}, None)["merged"]
    assert handlers.finish({"job": job.id}, None) == {"job": job.id, "state": "completed"}
    handlers._ends.cache_clear()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    [written] = [line for line in lines if "CostUsd" in line]
    assert (written["Platform"], written["Team"], written["CompletedRequests"]) == ("chat", "search", 27)
    assert written["CostUsd"] == cast("float", pytest.approx(0.27))
    # `blueprints costs` asks for tokens by team and model.
    [directive] = written["_aws"]["CloudWatchMetrics"]
    assert ["Platform", "Team", "Model"] in directive["Dimensions"]
    assert [line["State"] for line in lines if "JobsEnded" in line] == ["completed"]


def test_the_end_of_a_child_execution_ends_no_job(platform_in_process: BatchPlatform) -> None:
    """A shard that fails is an execution of its own, whose input names a job and no attempt."""
    job = running(platform_in_process)
    for given in (json.dumps({"job": job.id, "shard": "s0"}), None):
        handlers.close({"detail": {"status": "FAILED", "input": given}}, None)
    found = platform_in_process.jobs.get(job.id)
    assert found is not None
    assert found.state == "in_progress"
