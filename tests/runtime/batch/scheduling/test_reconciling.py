"""A job ends although the event of its execution's end is lost, and although calls were interrupted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from batch.jobs.executions import Executions
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.scheduling.admissions import AdmissionTable
from batch.scheduling.reconciling import Reconciler, read_open_jobs
from inference_contracts.batch_limits import CLOSE_SECONDS, SCHEDULE_SECONDS
from inference_contracts.batch_names import OPEN, JobState
from tests.runtime.batch.job_records import NOW, make_job

#: All runs in which each job is compared at least once.
ROUND = [NOW + 1000 + number * SCHEDULE_SECONDS for number in range(5)]


class StepFunctions:
    """Executions by name, with the answers of DescribeExecution, StopExecution and StartExecution."""

    def __init__(self) -> None:
        self.executions: dict[str, dict[str, Any]] = {}
        self.stopped: list[str] = []
        self.started: list[str] = []
        self.described = 0

    def describe_execution(self, *, executionArn: str) -> Mapping[str, Any]:  # noqa: N803 - its parameters
        self.described += 1
        return self._found(executionArn, "DescribeExecution")

    def stop_execution(self, *, executionArn: str, error: str, cause: str) -> None:  # noqa: N803
        assert error
        assert cause
        self._found(executionArn, "StopExecution")
        self.stopped.append(executionArn.rsplit(":", 1)[-1])

    def start_execution(self, *, name: str, **_: str) -> None:
        self.started.append(name)

    def _found(self, arn: str, operation: str) -> dict[str, Any]:
        name = arn.rsplit(":", 1)[-1]
        if name not in self.executions:
            raise ClientError({"Error": {"Code": "ExecutionDoesNotExist", "Message": ""}}, operation)
        return self.executions[name]

    def put(self, job: Job, status: str, *, ended_at: float | None = None) -> None:
        execution: dict[str, Any] = {
            "status": status,
            "input": json.dumps({"job": job.id, "attempt": job.attempt}),
        }
        if ended_at is not None:
            execution |= {"stopDate": datetime.fromtimestamp(ended_at, UTC), "error": "E", "cause": "why"}
        self.executions[f"{job.id}-{job.attempt}"] = execution


@pytest.fixture
def states() -> StepFunctions:
    return StepFunctions()


@pytest.fixture
def closed() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def reconciler(
    aws: dict[str, str],
    platform_in_process: BatchPlatform,
    states: StepFunctions,
    closed: list[dict[str, Any]],
) -> Reconciler:
    def close(event: Mapping[str, Any]) -> None:
        closed.append({**event["detail"], "input": json.loads(event["detail"]["input"])})

    return Reconciler(
        jobs=platform_in_process.jobs,
        table=platform_in_process.table,
        executions=Executions(states, aws["BATCH_STATE_MACHINE_ARN"]),
        close=close,
    )


def in_state(platform: BatchPlatform, state: JobState, **changes: Any) -> Job:
    return make_job(platform, state=state, times={f"{state}_at": NOW}, **changes)


def run(reconciler: Reconciler, platform: BatchPlatform, *, now: float) -> None:
    reconciler.run(read_open_jobs(platform.jobs, AdmissionTable(platform.table)), now=now)


def state_of(platform: BatchPlatform, job: Job) -> str:
    found = platform.jobs.get(job.id)
    assert found is not None
    return found.state


@pytest.mark.parametrize("status", ["ABORTED", "FAILED", "TIMED_OUT", "SUCCEEDED"])
def test_a_job_whose_execution_has_ended_is_closed(
    reconciler: Reconciler,
    platform_in_process: BatchPlatform,
    states: StepFunctions,
    closed: list[dict[str, Any]],
    status: str,
) -> None:
    jobs = [in_state(platform_in_process, state) for state in OPEN]
    for job in jobs:
        states.put(job, status, ended_at=NOW)
    for now in ROUND:
        run(reconciler, platform_in_process, now=now)
    ended = {"status": status, "error": "E", "cause": "why"}
    expected = [{**ended, "input": {"job": job.id, "attempt": 1}} for job in jobs]
    assert sorted(closed, key=repr) == sorted(expected, key=repr)


def test_the_event_has_time_to_arrive_first(
    reconciler: Reconciler,
    platform_in_process: BatchPlatform,
    states: StepFunctions,
    closed: list[dict[str, Any]],
) -> None:
    job = in_state(platform_in_process, "cancelling")
    states.put(job, "ABORTED", ended_at=NOW + 1000)
    run(reconciler, platform_in_process, now=NOW + 1060)
    assert closed == []


def test_closing_is_asked_again_only_after_it_had_its_time(
    reconciler: Reconciler,
    platform_in_process: BatchPlatform,
    states: StepFunctions,
    closed: list[dict[str, Any]],
) -> None:
    job = in_state(platform_in_process, "cancelling")
    states.put(job, "ABORTED", ended_at=NOW)
    begin = (NOW // CLOSE_SECONDS + 2) * CLOSE_SECONDS
    for second in range(begin, begin + 3 * CLOSE_SECONDS, SCHEDULE_SECONDS):
        run(reconciler, platform_in_process, now=second)
    assert len(closed) == 3


def test_a_running_job_is_left_alone(
    reconciler: Reconciler,
    platform_in_process: BatchPlatform,
    states: StepFunctions,
    closed: list[dict[str, Any]],
) -> None:
    jobs = [in_state(platform_in_process, state) for state in ("validating", "in_progress", "finalizing")]
    for job in jobs:
        states.put(job, "RUNNING")
    for now in ROUND:
        run(reconciler, platform_in_process, now=now)
    assert (states.stopped, states.started, closed) == ([], [], [])


def test_jobs_are_compared_in_turns(
    reconciler: Reconciler, platform_in_process: BatchPlatform, states: StepFunctions
) -> None:
    for job in (in_state(platform_in_process, "in_progress") for _ in range(20)):
        states.put(job, "RUNNING")
    each: list[int] = []
    for now in ROUND:
        run(reconciler, platform_in_process, now=now)
        each.append(states.described - sum(each))
    assert sum(each) == 20
    assert max(each) < 20


@pytest.mark.parametrize("state", ["validating", "in_progress"])
def test_a_job_that_is_too_late_is_stopped(
    reconciler: Reconciler, platform_in_process: BatchPlatform, states: StepFunctions, state: JobState
) -> None:
    job = in_state(platform_in_process, state)
    states.put(job, "RUNNING")
    run(reconciler, platform_in_process, now=job.expires_at)
    assert states.stopped == [f"{job.id}-1"]


def test_a_cancelled_job_that_still_runs_is_stopped(
    reconciler: Reconciler, platform_in_process: BatchPlatform, states: StepFunctions
) -> None:
    """The API was interrupted between the new state and the call that stops the execution."""
    job = in_state(platform_in_process, "cancelling")
    states.put(job, "RUNNING")
    run(reconciler, platform_in_process, now=NOW + 1)
    assert states.stopped == [f"{job.id}-1"]


def test_a_job_that_is_about_to_end_may_go_on_after_its_deadline(
    reconciler: Reconciler, platform_in_process: BatchPlatform, states: StepFunctions
) -> None:
    job = in_state(platform_in_process, "finalizing")
    states.put(job, "RUNNING")
    run(reconciler, platform_in_process, now=job.expires_at + 1)
    assert states.stopped == []


def test_a_job_that_never_began_is_started_after_a_while(
    reconciler: Reconciler, platform_in_process: BatchPlatform, states: StepFunctions
) -> None:
    job = make_job(platform_in_process)
    for now in (NOW, NOW + 60, NOW + 120, NOW + 180, NOW + 240):
        run(reconciler, platform_in_process, now=now)
    assert states.started == []
    for now in ROUND:
        run(reconciler, platform_in_process, now=now)
    assert states.started == [f"{job.id}-1"]


@pytest.mark.parametrize(("state", "end"), [("validating", "expired"), ("cancelling", "cancelled")])
def test_a_job_that_never_began_ends(
    reconciler: Reconciler, platform_in_process: BatchPlatform, state: JobState, end: JobState
) -> None:
    job = in_state(platform_in_process, state)
    run(reconciler, platform_in_process, now=job.expires_at)
    assert state_of(platform_in_process, job) == end


def test_a_redriven_job_is_started_and_not_ended(
    reconciler: Reconciler, platform_in_process: BatchPlatform, states: StepFunctions
) -> None:
    """The first execution has ended. The second was written into the record and never started."""
    job = make_job(platform_in_process, attempt=2, state="in_progress", times={"in_progress_at": NOW})
    first = make_job(platform_in_process)
    states.executions[f"{job.id}-1"] = {"status": "FAILED", "input": "{}"}
    states.put(first, "RUNNING")
    for now in ROUND:
        run(reconciler, platform_in_process, now=now)
    assert states.started == [f"{job.id}-2"]
