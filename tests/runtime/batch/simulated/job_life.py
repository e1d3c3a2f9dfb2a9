"""A job's life with the real functions, around the simulated state machine, while one delivery goes wrong.

Tables and objects are moto's. Step Functions, EventBridge, asynchronous calls of Lambda, queue and worker are
simulated, and so is the clock. Each delivery between them has a number: one of them is lost, comes twice or
comes late. Each call to Step Functions, EventBridge or Lambda has a number too: one is refused, or its answer
is lost.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import boto3
import pytest
import simpy
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws

from batch.completion import handlers as completion
from batch.contracts.shard import ShardDone, Usage
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform, read_platform
from batch.objects import Objects
from batch.preparation import handlers as preparation
from batch.scheduling import handlers as scheduling
from inference_constructs.batch.job_states import JobResources, job_definition
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import SCHEDULE_SECONDS, VISIBILITY_SECONDS
from tests.runtime.batch import resources
from tests.runtime.batch.every_call import CONFIGURATION, forget
from tests.runtime.batch.job_records import NOW
from tests.runtime.batch.simulated.state_machine import (
    Execution,
    Limits,
    Machine,
    Outside,
    Process,
    TaskError,
)

#: What happens to one delivery, or to one call.
Fault = Literal["lost", "twice", "late", "refused", "unanswered", "killed"]
DELIVERY_FAULTS: Sequence[Fault] = ("lost", "twice", "late")
CALL_FAULTS: Sequence[Fault] = ("refused", "unanswered")
WORKER_FAULTS: Sequence[Fault] = ("killed",)
LATE_SECONDS = 25 * 60
#: Waits of Lambda before it repeats an asynchronous call
#: (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html).
_REPEATED_AFTER = (60, 120)
_SECONDS_OF_A_SHARD = 90
_FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "segment": preparation.segment,
    "check": preparation.check,
    "plan": preparation.plan,
    "ask": scheduling.ask,
    "merge": completion.merge,
    "finish": completion.finish,
    "reject": completion.reject,
}
_SIMULATED = (
    "StartExecution",
    "StopExecution",
    "DescribeExecution",
    "SendTaskSuccess",
    "PutEvents",
    "Invoke",
    "ListMapRuns",
    "UpdateMapRun",
)


@dataclass
class Story:
    """How a job would end without faults."""

    end: str
    """Final state."""
    cancelled_at: float | None = None
    """Second at which its team cancels it."""
    workers_answer: bool = True
    """Whether workers run its shards."""
    broken: str = ""
    """Function that always fails."""
    scheduled_every: float = 2 * SCHEDULE_SECONDS
    """Seconds between two runs of the scheduler: at least twice those of the stack, for faster tests."""


class FaultSchedule:
    """Faults of a life by chance: several of all kinds, and then none, so that the job can end.

    seed: Number that repeats the schedule.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        self._left = self._chance.randint(2, 12)
        self._likely = self._chance.choice([0.1, 0.3, 0.6])

    def next(self, faults: Sequence[Fault]) -> Fault | None:
        """Return the fault of what happens now, if it has one."""
        if not self._left or self._chance.random() > self._likely:
            return None
        self._left -= 1
        return self._chance.choice(faults)


@dataclass
class Life:
    """The simulated services of one job."""

    story: Story
    fault: Fault | None = None
    """The only fault."""
    place: int = -1
    """The number of the delivery or call that has it."""
    schedule: FaultSchedule | None = None
    """Further faults."""
    env: simpy.Environment = field(default_factory=simpy.Environment)
    deliveries: int = 0
    calls: int = 0
    pending: int = 0

    def __post_init__(self) -> None:
        names = {name: name for name in _FUNCTIONS}
        self.machine = Machine(
            self.env,
            job_definition(JobResources(names, resources.BUCKET)),
            Outside(self._call, self._send, self._read),
            limits=Limits(25_000, 100),
            ended=self._tell_end,
        )

    # --- Deliveries. ---

    def deliver(self, act: Callable[[], object]) -> None:
        """Deliver an event, a message or an answer; the one with the fault goes wrong."""
        self.deliveries += 1
        fault = self._fault(self.deliveries, DELIVERY_FAULTS)
        times = {"lost": 0, "twice": 2}.get(fault or "", 1)
        wait = LATE_SECONDS if fault == "late" else 0
        for _ in range(times):
            self.pending += 1
            self.env.process(self._later(wait, act))

    def _fault(self, count: int, kinds: Sequence[Fault]) -> Fault | None:
        """Return the fault of the delivery or call with a number, from 1."""
        if count - 1 == self.place and self.fault in kinds:
            return self.fault
        return None if self.schedule is None else self.schedule.next(kinds)

    def _later(self, wait: float, act: Callable[[], object]) -> Process:
        yield self.env.timeout(wait + 1)
        self.pending -= 1
        act()

    def call_later(self, function: Callable[[Any, Any], Any], event: Any) -> None:
        """Deliver an asynchronous call of a function, which Lambda repeats if it fails."""
        self.deliver(lambda: self.env.process(self._repeat(function, event)))

    def _repeat(self, function: Callable[[Any, Any], Any], event: Any) -> Process:
        self.pending += 1
        for wait in (*_REPEATED_AFTER, 0):
            try:
                function(event, None)
                break
            except ClientError:
                yield self.env.timeout(wait)
        self.pending -= 1

    # --- The state machine's functions, queue and worker. ---

    def _call(self, function: str, payload: Any) -> Process:
        yield self.env.timeout(1)
        if function == self.story.broken:
            raise TaskError("Exception")
        try:
            return _FUNCTIONS[function](payload, None)
        except Exception as error:
            raise TaskError(type(error).__name__, str(error)) from error

    def _read(self, key: str) -> list[Any]:
        return [json.loads(line) for line in resources.read_object(key).splitlines()]

    def _send(self, _queue: str, message: Mapping[str, str]) -> None:
        if self.story.workers_answer:
            self.deliver(lambda: self.env.process(self._work(message)))

    def _work(self, message: Mapping[str, str]) -> Process:
        token = message["taskToken"]
        for _ in range(3):
            if not self.machine.beat(token):
                return
            yield self.env.timeout(_SECONDS_OF_A_SHARD / 3)
            if self._fault(0, WORKER_FAULTS) is not None:
                # It is killed. Its message comes back when nobody has held it for a while.
                yield self.env.timeout(VISIBILITY_SECONDS)
                self.env.process(self._work(message))
                return
        keys, objects = JobKeys(message["job"]).shard(message["shard"]), Objects(resources.BUCKET)
        objects.write(keys.output, b'{"custom_id":"a"}\n')
        objects.write(
            keys.done, ShardDone(message["shard"], 1, 0, 1, Usage(1000, 500, 100)).to_json().encode()
        )
        self.deliver(lambda: self.machine.succeed(token, {}))

    def _tell_end(self, execution: Execution) -> None:
        """Put the event of an execution's end on the bus. A rule selects those that `close` gets."""
        if execution.status != "SUCCEEDED":
            self.call_later(completion.close, {"detail": self._described(execution)})

    def run_scheduler(self) -> Process:
        while True:
            yield self.env.timeout(self.story.scheduled_every)
            self.env.process(self._repeat(scheduling.schedule, {"source": "aws.events"}))

    # --- Calls to AWS. ---

    def call(self, plain: Callable[..., Any], client: Any, operation: str, given: dict[str, Any]) -> Any:
        """Make a call to AWS; the one with the fault is refused, or its answer is lost."""
        if operation not in _SIMULATED:
            return plain(client, operation, given)
        self.calls += 1
        fault = self._fault(self.calls, CALL_FAULTS)
        if fault == "refused":
            raise _error("ServiceUnavailable", operation)
        answer = getattr(self, f"_{operation}")(given)
        if fault == "unanswered":
            raise _error("ServiceUnavailable", operation)
        return answer

    def _StartExecution(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - the operation's name
        if not self.machine.start(given["name"], json.loads(given["input"])):
            raise _error("ExecutionAlreadyExists", "StartExecution")
        return {}

    def _StopExecution(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._found(given, "StopExecution")
        self.machine.stop(given["executionArn"].rsplit(":", 1)[-1])
        return {}

    def _DescribeExecution(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._described(self._found(given, "DescribeExecution"))

    def _SendTaskSuccess(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if not self.machine.succeed(given["taskToken"], json.loads(given["output"])):
            raise _error("TaskDoesNotExist", "SendTaskSuccess")
        return {}

    def _PutEvents(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        for entry in given["Entries"]:
            self.call_later(scheduling.schedule, {"source": entry["Source"]})
        return {"FailedEntryCount": 0}

    def _Invoke(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.call_later(completion.close, json.loads(given["Payload"]))
        return {"StatusCode": 202}

    def _ListMapRuns(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        execution = self._found(given, "ListMapRuns")
        return {
            "mapRuns": [
                {"mapRunArn": f"arn:aws:states:us-west-2:1:mapRun:batch/{each.label}:{execution.name}"}
                for each in execution.map_runs
            ]
        }

    def _UpdateMapRun(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        label, _, name = given["mapRunArn"].rpartition("/")[2].partition(":")
        for each in self.machine.executions[name].map_runs:
            if each.label == label:
                each.concurrency = given["maxConcurrency"]
                each.change()
        return {}

    def _found(self, given: dict[str, Any], operation: str) -> Execution:
        name = given["executionArn"].rsplit(":", 1)[-1]
        if name not in self.machine.executions:
            raise _error("ExecutionDoesNotExist", operation)
        return self.machine.executions[name]

    def _described(self, execution: Execution) -> dict[str, Any]:
        found = {"status": execution.status, "input": json.dumps(execution.input), "error": execution.error}
        if execution.ended_at is None:
            return found
        return {**found, "stopDate": datetime.fromtimestamp(NOW + execution.ended_at, UTC), "cause": "why"}


def _error(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, operation)


@contextmanager
def simulated(life: Life, configuration: dict[str, Any] = CONFIGURATION) -> Iterator[BatchPlatform]:
    """Emulate tables and objects, and route the other calls to the simulation."""
    with mock_aws(), TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "none")
        patch.setenv("AWS_DEFAULT_REGION", resources.REGION)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        environment = resources.create(Path(folder), configuration)
        environment |= {
            "BATCH_QUEUE_URLS": json.dumps({"qwen3-8b": "https://queue"}),
            "BATCH_PLATFORM": "chat",
            "BATCH_CLOSE_FUNCTION": "close",
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        plain = BaseClient._make_api_call

        def call(client: Any, operation: str, given: dict[str, Any]) -> Any:
            return life.call(plain, client, operation, given)

        patch.setattr(BaseClient, "_make_api_call", call)
        patch.setattr(time, "time", lambda: NOW + life.env.now)
        patch.setattr(time, "time_ns", lambda: int((NOW + life.env.now) * 10**9))
        forget()
        try:
            yield read_platform(environment)
        finally:
            forget()


def is_over(platform: BatchPlatform, job: Job) -> bool:
    found = platform.jobs.get(job.id)
    return found is not None and found.state in ("completed", "failed", "expired", "cancelled")
