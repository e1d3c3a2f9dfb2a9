"""Sixty large jobs at once, at the default quotas of an account: all complete, and the API stays reachable.

The state machine is the shipped definition, executed against a simulated clock. Times of functions and shards
are assumptions; quotas come from the catalogue.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import simpy

from batch.scheduling.allotment import WaitingOrRunning, allot
from inference_catalog import service_quotas
from inference_constructs.batch.job_states import JobResources, job_definition
from inference_contracts.batch_limits import (
    MAX_RESIZES_PER_RUN,
    RESERVED_CALLS,
    SCHEDULE_SECONDS,
    SEGMENT_BYTES,
    WORKER_HEARTBEAT_SECONDS,
)
from tests.runtime.batch.simulated.lambda_service import Concurrency
from tests.runtime.batch.simulated.state_machine import (
    Execution,
    Limits,
    Machine,
    MapRun,
    Outside,
    Process,
    TaskError,
)

FUNCTIONS = ("segment", "check", "plan", "reject", "ask", "merge", "finish", "publish")
JOBS, LINES, LINE_BYTES = 60, 500_000, 40_000
SEGMENTS = LINES * LINE_BYTES // SEGMENT_BYTES + 1
#: Shards of 8 million tokens at 4 bytes per token.
SHARDS = LINES * LINE_BYTES // 4 // 8_000_000
HOUR = 3600
DEADLINE = 24 * HOUR
#: Seconds of checking 64 MiB: at the speed that `blueprints plan` assumes, and slowed by templates, Parquet
#: and a busy network.
FAST_CHECK, SLOW_CHECK = 2, 84
#: Seconds of other calls.
SECONDS = {"segment": 60, "plan": 120, "ask": 1, "merge": 300, "finish": 2, "api": 0.3}
PLACES = 400
SHARD_SECONDS = 600


def shipped() -> Mapping[str, Any]:
    return job_definition(JobResources({name: name for name in FUNCTIONS}, "bucket"))


def without_patience() -> Mapping[str, Any]:
    """The definition of commit 9971fa9, in which a throttled function gets six retries."""
    file = Path(__file__).with_name("definition_without_patience.json")
    document: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return document


@dataclass
class Platform:
    """Functions, scheduler and workers around the state machine."""

    definition: Mapping[str, Any]
    reserved: Mapping[str, int]
    check_seconds: float = SLOW_CHECK
    env: simpy.Environment = field(default_factory=simpy.Environment)
    asked: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    ended: list[Execution] = field(default_factory=list)
    api_refused: int = 0

    def __post_init__(self) -> None:
        quotas = service_quotas()
        limits = Limits(int(quotas["states.historyEvents"].value), float(quotas["states.childStarts"].value))
        self.calls = Concurrency(int(quotas["lambda.concurrency"].value), self.reserved)
        self.chance = random.Random(3)  # noqa: S311 - no secret
        self.workers = simpy.Resource(self.env, PLACES)
        self.machine = Machine(
            self.env,
            self.definition,
            Outside(self._call, self._send, self._read),
            limits=limits,
            ended=self.ended.append,
            chance=random.Random(7),  # noqa: S311 - no secret
        )

    def run(self, jobs: int) -> None:
        for number in range(jobs):
            self.machine.start(f"job-{number}", {"job": f"job-{number}", "attempt": 1})
        self.env.process(self._schedule())
        self.env.process(self.use_the_api())
        while len(self.ended) < jobs and self.env.peek() < DEADLINE + HOUR:
            self.env.step()

    def _call(self, function: str, payload: Any) -> Process:
        self.calls.enter(function)
        try:
            yield self.env.timeout(
                {**SECONDS, "check": self.check_seconds}[function] * self.chance.uniform(0.8, 1.2)
            )
        finally:
            self.calls.leave(function)
        if function == "ask":
            self.asked[payload["job"]] = payload["taskToken"]
        return {
            "segment": {"segments": SEGMENTS, "key": "segments"},
            "plan": {"accepted": True},
            "merge": {"merged": True, "publications": 0},
        }.get(function, {})

    def _read(self, key: str) -> list[Any]:
        if key == "segments":
            return [{"segment": number} for number in range(SEGMENTS)]
        return [{"shard": f"{number:06d}"} for number in range(SHARDS)]

    def _send(self, _queue: str, message: Any) -> None:
        self.env.process(self._work(message))

    def _work(self, message: Any) -> Process:
        """Run a shard as soon as a worker has a free place, with heartbeats."""
        with self.workers.request() as free:
            yield free
            left = SHARD_SECONDS
            while left > 0:
                if not self.machine.beat(message["taskToken"]):
                    return  # The task has timed out: another message has its shard.
                # A heartbeat costs the simulation most, so there are as few as the time-out allows.
                yield self.env.timeout(min(left, 3 * WORKER_HEARTBEAT_SECONDS))
                left -= 3 * WORKER_HEARTBEAT_SECONDS
            self.done[message["job"]] = self.done.get(message["job"], 0) + 1
            self.machine.succeed(message["taskToken"], {})

    def _schedule(self) -> Process:
        while True:
            yield self.env.timeout(SCHEDULE_SECONDS)
            running = {name for name, each in self.machine.executions.items() if each.status == "RUNNING"}
            if self.env.now >= DEADLINE:
                for name in running:
                    self.machine.stop(name)
            wanted = [self._wanted(job) for job in self.asked if job in running]
            resizes = MAX_RESIZES_PER_RUN
            for job, places in allot(wanted, PLACES, now=self.env.now).items():
                if job not in self.places:
                    if places:
                        self.places[job] = places
                        self.machine.succeed(self.asked[job], {"places": places, "queueUrl": "queue"})
                elif places != self.places[job] and resizes:
                    resizes -= 1
                    self.places[job] = places
                    for each in self._map_runs(job):
                        each.concurrency = places
                        each.change()

    def _wanted(self, job: str) -> WaitingOrRunning:
        return WaitingOrRunning(
            job=job,
            team="search",
            priority=10,
            submitted=0,
            deadline=DEADLINE,
            shards=max(SHARDS - self.done.get(job, 0), 1),
            seconds_per_shard=SHARD_SECONDS,
            is_running=job in self.places,
        )

    def _map_runs(self, job: str) -> list[MapRun]:
        return [each for each in self.machine.executions[job].map_runs if each.label == "Shards"]

    def use_the_api(self) -> Process:
        while True:
            yield self.env.timeout(5)
            try:
                yield from self._call("api", {})
            except TaskError:
                self.api_refused += 1


def statuses(platform: Platform) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in platform.machine.executions.values():
        found[each.status] = found.get(each.status, 0) + 1
    return found


@pytest.mark.faults
def test_sixty_jobs_at_once_all_complete() -> None:
    platform = Platform(shipped(), RESERVED_CALLS)
    platform.run(JOBS)
    assert statuses(platform) == {"SUCCEEDED": JOBS}
    assert platform.api_refused == 0
    assert platform.calls.throttled["check"] > 0, "the burst is larger than the quota"
    assert max(each.ended_at or DEADLINE for each in platform.ended) < DEADLINE
    assert platform.machine.most_events < service_quotas()["states.historyEvents"].value / 10


def checked(
    definition: Mapping[str, Any],
    reserved: Mapping[str, int],
    jobs: int,
    check_seconds: float = SLOW_CHECK,
) -> Platform:
    """Run jobs until all are checked or have failed."""
    platform = Platform(definition, reserved, check_seconds)
    for number in range(jobs):
        platform.machine.start(f"job-{number}", {"job": f"job-{number}", "attempt": 1})
    platform.env.process(platform.use_the_api())
    while len(platform.asked) + len(platform.ended) < jobs:
        platform.env.step()
    return platform


@pytest.mark.parametrize(("seconds", "failed"), [(FAST_CHECK, 1), (SLOW_CHECK, JOBS // 2)])
def test_some_of_sixty_jobs_fail_without_patience(seconds: float, failed: int) -> None:
    """Six retries are too few, and the API has no room of its own."""
    platform = checked(without_patience(), {}, JOBS, seconds)
    assert platform.api_refused > 0
    assert statuses(platform)["FAILED"] >= failed


def test_fifteen_jobs_are_checked_without_patience() -> None:
    """Below the quota, the simulation fails no job."""
    platform = checked(without_patience(), {}, 15)
    assert len(platform.asked) == 15


def test_a_job_ends_at_its_deadline_although_functions_are_always_busy() -> None:
    platform = Platform(shipped(), {**RESERVED_CALLS, "check": 0})
    platform.run(2)
    assert statuses(platform) == {"ABORTED": 2}
    assert platform.machine.most_events < service_quotas()["states.historyEvents"].value
