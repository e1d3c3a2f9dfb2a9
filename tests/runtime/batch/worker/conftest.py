"""Workers as processes, with an AWS emulator and an endpoint that fails on request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.resources import root
from inference_local.emulator.emulator import Emulator
from tests.runtime.batch.worker.fake_endpoint import FakeEndpoint
from tests.runtime.batch.worker.jobs import BUCKET, MODEL, Job, wait_until

REGION = "us-west-2"
_QUEUE_SECONDS = "5"
_ROLE = "arn:aws:iam::123456789012:role/states"


@dataclass
class Worker:
    """A worker's process."""

    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def events(self) -> list[dict[str, Any]]:
        """The complete lines of its log."""
        whole = self.log_path.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def logged(self, event: str) -> bool:
        return any(entry.get("event") == event for entry in self.events)

    def stop(self, seconds: float = 60) -> None:
        self.process.terminate()
        assert self.process.wait(seconds) == 0, self.log_path.read_text()


@dataclass
class Stage:
    """A queue of the emulator, a state machine that fills it, and the workers that empty it."""

    emulator: Emulator
    endpoint: FakeEndpoint
    directory: Path
    queue_url: str
    machine: str
    workers: list[Worker] = field(default_factory=list)

    def submit(self, job: Job) -> str:
        """Start a task for each shard. The execution ends when all tasks have ended."""
        body = json.dumps({"job": job.name, "shards": list(job.shards)})
        started = self.emulator.client("stepfunctions").start_execution(
            stateMachineArn=self.machine, input=body
        )
        return str(started["executionArn"])

    def state(self, execution: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.emulator.client("stepfunctions").describe_execution(
            executionArn=execution
        )
        return answer

    def messages(self) -> int:
        """Return the number of messages in the queue, including those that a worker holds."""
        attributes = self.emulator.client("sqs").get_queue_attributes(
            QueueUrl=self.queue_url,
            AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        )["Attributes"]
        return sum(map(int, attributes.values()))

    def wait(self, execution: str) -> dict[str, Any]:
        wait_until(lambda: self.state(execution)["status"] != "RUNNING", f"the end of {execution}")
        return self.state(execution)

    def start(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Start a worker with short intervals."""
        path = self.directory / f"worker-{len(self.workers)}.log"
        with path.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "batch.worker"],
                cwd=self.directory,
                env={
                    **os.environ,
                    **self.emulator.environment(),
                    "PYTHONPATH": str(root() / "runtime"),
                    "BATCH_QUEUE_URL": self.queue_url,
                    "BATCH_BUCKET": BUCKET,
                    "BATCH_ENDPOINT": self.endpoint.url,
                    "BATCH_MODEL": MODEL,
                    "BATCH_HEARTBEAT_SECONDS": "1",
                    "BATCH_VISIBILITY_SECONDS": _QUEUE_SECONDS,
                    "BATCH_POLL_SECONDS": "1",
                    "BATCH_FLUSH_MILLISECONDS": "100",
                    "BATCH_LATENCY_PERCENT": "0",
                    **(environment or {}),
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        worker = Worker(process, path)
        self.workers.append(worker)
        return worker


@pytest.fixture(scope="session")
def batch_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator"), region=REGION) as running:
        running.client("s3").create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        yield running


@pytest.fixture(scope="session")
def fake_endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as running:
        yield running


@pytest.fixture
def s3(batch_emulator: Emulator) -> Any:
    return batch_emulator.client("s3")


@pytest.fixture
def stage(
    batch_emulator: Emulator, fake_endpoint: FakeEndpoint, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    fake_endpoint.begin_anew()
    # One queue per test, so that no test receives messages of another.
    name = f"shards-{abs(hash(request.node.nodeid)):x}"
    with staged(batch_emulator, fake_endpoint, tmp_path, name) as stage:
        yield stage


@contextmanager
def staged(emulator: Emulator, endpoint: FakeEndpoint, directory: Path, name: str) -> Iterator[Stage]:
    """Make a queue and a state machine, and end the workers afterwards."""
    queue = emulator.client("sqs").create_queue(
        QueueName=name, Attributes={"VisibilityTimeout": _QUEUE_SECONDS}
    )["QueueUrl"]
    machine = emulator.client("stepfunctions").create_state_machine(
        name=name, definition=json.dumps(_definition(queue)), roleArn=_ROLE
    )["stateMachineArn"]
    stage = Stage(emulator, endpoint, directory, queue, machine)
    yield stage
    for worker in stage.workers:
        if worker.process.poll() is None:
            worker.process.kill()
            worker.process.wait()


def _definition(queue_url: str) -> dict[str, Any]:
    """Return the map of a job over its shards, with the retries of the real one."""
    send = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Arguments": {
            "QueueUrl": queue_url,
            "MessageBody": "{% {'job': $states.input.job, 'shard': $states.input.shard, "
            "'taskToken': $states.context.Task.Token} %}",
        },
        "End": True,
    }
    shards = {
        "Type": "Map",
        "Items": "{% $map($states.input.shards, function($shard) "
        "{{'job': $states.input.job, 'shard': $shard}})[] %}",
        "ItemProcessor": {"StartAt": "Send", "States": {"Send": send}},
        "End": True,
    }
    return {"QueryLanguage": "JSONata", "StartAt": "Shards", "States": {"Shards": shards}}


Started = Callable[..., Worker]
