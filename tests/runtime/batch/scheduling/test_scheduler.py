"""Jobs are let in as places are free, resized as others come, held by budgets."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from batch.completion.ending import Ends
from batch.contracts.shard import ShardDone
from batch.jobs.door_spending import DoorSpending
from batch.jobs.executions import Executions
from batch.jobs.job_table import Job, JobTable
from batch.jobs.record_table import Table
from batch.jobs.settings import BatchPlatform, RecordTables
from batch.jobs.spending import Figures, SpendingTable, additions
from batch.objects import Objects
from batch.scheduling.admissions import Admission, AdmissionTable, Measured
from batch.scheduling.ceilings import Ceilings
from batch.scheduling.measuring import SpeedTable
from batch.scheduling.place_scheduler import Scheduler
from batch.scheduling.reconciling import read_open_jobs
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import MAX_RESIZES_PER_RUN
from inference_contracts.shift_names import ceiling_identifier, deadlines_identifier
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import HOUR, NOW, make_job


class StepFunctions:
    """Records what Step Functions is told."""

    def __init__(self) -> None:
        self.went_on: dict[str, dict[str, Any]] = {}
        self.resized: dict[str, int] = {}
        self.error: str | None = None

    def send_task_success(self, *, taskToken: str, output: str) -> None:  # noqa: N803 - its parameters
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": ""}}, "SendTaskSuccess")
        self.went_on[taskToken] = json.loads(output)

    def list_map_runs(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        name = executionArn.rsplit(":", 1)[-1]
        runs = [
            {"mapRunArn": f"arn:aws:states:us-west-2:1:mapRun:batch/Segments:{name}", "stopDate": 1},
            {"mapRunArn": f"arn:aws:states:us-west-2:1:mapRun:batch/Shards:{name}"},
        ]
        return {"mapRuns": runs}

    def update_map_run(self, *, mapRunArn: str, maxConcurrency: int) -> None:  # noqa: N803
        self.resized[mapRunArn.rsplit(":", 1)[-1]] = maxConcurrency


@dataclass
class ScheduledPlatform:
    """The scheduler, and the tables that it reads before each run."""

    scheduler: Scheduler
    jobs: JobTable
    admissions: AdmissionTable

    def run(self, *, now: float, resizes: int = MAX_RESIZES_PER_RUN) -> None:
        self.scheduler.run(read_open_jobs(self.jobs, self.admissions), now=now, resizes=resizes)


@pytest.fixture
def states() -> StepFunctions:
    return StepFunctions()


@pytest.fixture
def admissions(aws: dict[str, str]) -> AdmissionTable:
    return AdmissionTable(Table(boto3.resource("dynamodb").Table(aws["BATCH_TABLE"])))


def scheduled(
    environment: dict[str, str],
    platform: BatchPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    *,
    limited: frozenset[str] = frozenset(),
    door: DoorSpending | None = None,
) -> ScheduledPlatform:
    """The scheduler with four places. The shift limits some models, or a front door charges requests."""
    document = copy.deepcopy(resources.CONFIGURATION)
    document["queues"][0]["capacity"]["places"] = 4
    scheduler = Scheduler(
        configuration=Configuration.from_json(json.dumps(document)),
        jobs=platform.jobs,
        admissions=admissions,
        speeds=SpeedTable(platform.table),
        ceilings=Ceilings(platform.table, limited),
        spending=SpendingTable(platform.table),
        door=door,
        objects=Objects(resources.BUCKET),
        executions=Executions(states, environment["BATCH_STATE_MACHINE_ARN"]),
        step_functions=states,
        queue_urls={"qwen3-8b": "https://queue"},
    )
    return ScheduledPlatform(scheduler, platform.jobs, admissions)


@pytest.fixture
def scheduler(
    aws: dict[str, str], platform_in_process: BatchPlatform, states: StepFunctions, admissions: AdmissionTable
) -> ScheduledPlatform:
    return scheduled(aws, platform_in_process, states, admissions)


def ask(admissions: AdmissionTable, job: Job, **changes: Any) -> Admission:
    admission = Admission(
        job=job.id,
        attempt=job.attempt,
        task_token=job.id,
        shards=3,
        shards_before=0,
        seconds_per_shard=1200.0,
        usd=50.0,
    )
    admission = replace(admission, **changes)
    admissions.put(admission, now=NOW)
    return admission


def finish_shard(job: Job, shard: str) -> None:
    done = ShardDone(shard, 10, 0, 10).to_json().encode()
    Objects(resources.BUCKET).write(JobKeys(job.id).shard(shard).done, done)


def state_of(platform: BatchPlatform, job: Job) -> str:
    found = platform.jobs.get(job.id)
    assert found is not None
    return found.state


def test_a_job_that_asks_is_let_in(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    job, unasked = make_job(platform_in_process), make_job(platform_in_process)
    ask(admissions, job)
    scheduler.run(now=NOW)
    assert states.went_on == {job.id: {"places": 3, "queueUrl": "https://queue"}}
    assert state_of(platform_in_process, job) == "in_progress"
    assert state_of(platform_in_process, unasked) == "validating"


def test_an_attempt_after_the_first_is_let_in_though_its_job_is_in_progress(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    job = make_job(platform_in_process, attempt=2, state="in_progress")
    finish_shard(job, "s1")
    ask(admissions, job, shards=2, shards_before=1)
    scheduler.run(now=NOW)
    assert states.went_on == {job.id: {"places": 2, "queueUrl": "https://queue"}}
    scheduler.run(now=NOW + 60)
    assert states.resized == {}, "what was done before is none of what it has to do"


def test_running_again_changes_nothing(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    ask(admissions, make_job(platform_in_process))
    scheduler.run(now=NOW)
    states.went_on.clear()
    scheduler.run(now=NOW + 60)
    assert (states.went_on, states.resized) == ({}, {})


def test_a_run_that_broke_off_before_it_told_is_finished_by_the_next(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    job = make_job(platform_in_process)
    ask(admissions, job)
    states.error = "ThrottlingException"
    with pytest.raises(ClientError):
        scheduler.run(now=NOW)
    states.error = None
    scheduler.run(now=NOW + 60)
    assert set(states.went_on) == {job.id}


def test_an_execution_that_waits_no_more_is_no_error(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    ask(admissions, make_job(platform_in_process))
    states.error = "TaskTimedOut"
    scheduler.run(now=NOW)
    states.error = None
    scheduler.run(now=NOW + 60)
    assert states.went_on == {}, "it is asked once more, although nobody waits"


def test_a_running_job_gives_places_to_one_that_is_urgent(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    running = make_job(platform_in_process)
    ask(admissions, running)
    scheduler.run(now=NOW)
    urgent = make_job(platform_in_process, team="adverts", expires_at=NOW + HOUR // 2, priority=50)
    ask(admissions, urgent)
    scheduler.run(now=NOW + 60)
    assert states.resized == {f"{running.id}-1": 1}
    assert states.went_on[urgent.id]["places"] == 3


def test_places_of_shards_that_are_done_are_free(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    first, second = make_job(platform_in_process), make_job(platform_in_process, created_at=NOW + 1)
    ask(admissions, first)
    ask(admissions, second)
    scheduler.run(now=NOW)
    assert states.went_on[first.id]["places"] + states.went_on[second.id]["places"] == 4
    for shard in ("s0", "s1"):
        finish_shard(first, shard)
    scheduler.run(now=NOW + 60)
    assert states.resized == {f"{first.id}-1": 1, f"{second.id}-1": 3}


def test_a_running_job_shrinks_and_grows_within_a_minute_as_the_shift_says(
    aws: dict[str, str],
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    limited = frozenset({"qwen3-8b"})
    scheduler = scheduled(aws, platform_in_process, states, admissions, limited=limited)
    job = make_job(platform_in_process)
    ask(admissions, job)
    for minute, places in enumerate((3, 0, 2)):
        at = NOW + 60 * minute
        ceiling = {"id": ceiling_identifier("qwen3-8b"), "record": {"places": places, "at": at}}
        platform_in_process.table.put(ceiling)
        scheduler.run(now=at)
        left = states.resized.get(f"{job.id}-1") or states.went_on[job.id]["places"]
        assert left == max(places, 1), "a map cannot run zero children"


def test_the_shift_is_told_what_deadlines_need(
    aws: dict[str, str], states: StepFunctions, admissions: AdmissionTable, platform_in_process: BatchPlatform
) -> None:
    """Red if the shift cannot know that jobs are urgent, or takes a time without workers for the work."""
    limited = frozenset({"qwen3-8b", "idle"})
    scheduler = scheduled(aws, platform_in_process, states, admissions, limited=limited)

    def needed(now: int, model: str = "qwen3-8b") -> int:
        scheduler.run(now=now)
        record = platform_in_process.table.get(deadlines_identifier(model))
        assert record is not None
        assert record["at"] == now
        return int(record["places"])

    assert needed(NOW) == 0
    assert needed(NOW, "idle") == 0
    # Three shards of twenty minutes: within an hour one place does all of them, and within 25 minutes none
    # does a second one. No place was given, so the job waits.
    job = make_job(platform_in_process)
    ask(admissions, job)
    end = job.expires_at
    assert [needed(end - seconds) for seconds in (3600, 3000, 1500, 60)] == [1, 2, 3, 3]
    # Without workers nothing is answered. It counts as four times slower at most, and a faster job as it is.
    for per_second, places in ((1e-9, 3), (1 / 600, 1)):
        ask(admissions, job, measured=Measured(0, 0, float(NOW), per_second))
        assert needed(end - 3 * 4800 + 60) == min(places, 2)
    assert needed(end + 1) == 0, "what is too late needs nothing"


def test_only_so_many_running_jobs_change_at_once_and_the_others_with_the_next_run(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    first, second = make_job(platform_in_process), make_job(platform_in_process, created_at=NOW + 1)
    for job in (first, second):
        ask(admissions, job)
    scheduler.run(now=NOW)
    assert states.went_on[first.id]["places"] + states.went_on[second.id]["places"] == 4
    for shard in ("s0", "s1"):
        finish_shard(first, shard)
    changed = {f"{first.id}-1": 1, f"{second.id}-1": 3}
    scheduler.run(now=NOW + 60, resizes=0)
    assert states.resized == {}
    for _ in changed:
        scheduler.run(now=NOW + 60, resizes=1)
    assert states.resized == changed


def test_a_budget_stops_admission_and_nothing_that_runs(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    running = make_job(platform_in_process, team="adverts")
    ask(admissions, running, usd=150.0)
    scheduler.run(now=NOW)
    waiting = make_job(platform_in_process, team="adverts")
    ask(admissions, waiting, usd=51.0)
    scheduler.run(now=NOW + 60)
    assert set(states.went_on) == {running.id}
    assert state_of(platform_in_process, waiting) == "validating"
    small = make_job(platform_in_process, team="adverts")
    ask(admissions, small, usd=49.0)
    scheduler.run(now=NOW + 120)
    assert set(states.went_on) == {running.id, small.id}


def test_behind_a_front_door_its_ledger_is_the_budget_of_jobs(
    aws: dict[str, str],
    platform_in_process: BatchPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
) -> None:
    """Red if a team's jobs have its budget once more, or if what a running job was charged counts twice."""
    charged = {"adverts": 0.0, "search": 0.0}
    scheduler = scheduled(
        aws,
        platform_in_process,
        states,
        admissions,
        door=cast("DoorSpending", SimpleNamespace(usd=lambda team, _: charged[team])),
    )
    running = make_job(platform_in_process, team="adverts")
    ask(admissions, running, usd=150.0)
    scheduler.run(now=NOW)
    waiting = make_job(platform_in_process, team="adverts")
    ask(admissions, waiting, usd=51.0)
    # Of three shards, two are done: what they cost is charged, and the third is estimated.
    charged["adverts"] = 99.5
    scheduler.run(now=NOW + 60)
    assert set(states.went_on) == {running.id}
    for shard in ("s0", "s1"):
        finish_shard(running, shard)
    scheduler.run(now=NOW + 120)
    assert set(states.went_on) == {running.id}, "a cent is missing"
    charged["adverts"] = 99.0
    scheduler.run(now=NOW + 180)
    assert set(states.went_on) == {running.id, waiting.id}
    # Requests in real time leave nothing to the next job.
    charged["adverts"] = 200.0
    late = make_job(platform_in_process, team="adverts")
    ask(admissions, late, usd=0.01)
    scheduler.run(now=NOW + 240)
    assert late.id not in states.went_on


def test_what_ended_this_month_is_spent_and_what_ended_before_is_not(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    month = 40 * 24 * HOUR
    # When it was submitted is no matter: what ended in this month is spent in it.
    for created, ended, usd in ((NOW - month, NOW - month, 199.0), (NOW - month, NOW, 100.0)):
        job = make_job(platform_in_process, team="adverts", created_at=created)
        platform_in_process.jobs.move(
            job.id,
            "failed",
            before=["validating"],
            now=ended,
            additions=additions(job, Figures(usd=usd), now=ended),
        )
    within = make_job(platform_in_process, team="adverts")
    over = make_job(platform_in_process, team="adverts", created_at=NOW + 1)
    ask(admissions, within, usd=99.0)
    ask(admissions, over, usd=2.0)
    scheduler.run(now=NOW)
    assert set(states.went_on) == {within.id}


def test_what_is_about_to_end_is_spent_by_its_estimate(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    ending = make_job(platform_in_process, team="adverts", state="finalizing")
    ask(admissions, ending, usd=150.0, places=1)
    waiting = make_job(platform_in_process, team="adverts")
    ask(admissions, waiting, usd=51.0)
    scheduler.run(now=NOW)
    assert states.went_on == {}


def test_a_job_that_is_too_late_gets_no_places(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    job = make_job(platform_in_process)
    ask(admissions, job)
    scheduler.run(now=job.expires_at)
    assert states.went_on == {}


def test_a_job_that_cannot_meet_its_deadline_gets_no_places(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    """Its execution continues without places, also if the first answer did not arrive, and ends it."""
    job = make_job(platform_in_process, expires_at=NOW + 600)
    ask(admissions, job, may_refuse=True)
    states.error = "ThrottlingException"
    with pytest.raises(ClientError):
        scheduler.run(now=NOW)
    states.error = None
    scheduler.run(now=NOW + 60)
    assert states.went_on == {job.id: {"places": 0, "queueUrl": ""}}
    ends = Ends(
        RecordTables(platform_in_process.table, platform_in_process.jobs, platform_in_process.files),
        Objects(resources.BUCKET),
        resources.BUCKET,
        lambda *_: None,
    )
    ended = ends.reject(job.id, now=NOW + 61)
    assert (ended.state, [error.code for error in ended.errors]) == ("failed", ["misses_deadline"])


def test_a_cancelled_job_is_not_let_in(
    scheduler: ScheduledPlatform,
    states: StepFunctions,
    admissions: AdmissionTable,
    platform_in_process: BatchPlatform,
) -> None:
    job = make_job(platform_in_process)
    ask(admissions, job)
    platform_in_process.jobs.move(job.id, "cancelling", before=["validating"], now=NOW)
    scheduler.run(now=NOW)
    assert states.went_on == {}
