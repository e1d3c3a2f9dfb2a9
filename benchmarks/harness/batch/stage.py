"""The worker's surroundings: an emulated S3, queue and state machine, and jobs of any size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.figure import ROOT, BenchmarkError
from inference_local.emulator.emulator import Emulator

sys.path.append(str(ROOT / "runtime"))

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardDone, ShardLine
from inference_contracts.batch_keys import JobKeys

_BUCKET = "batch"
_JOB = "bench"
_REGION = "us-west-2"
_DEADLINE_SECONDS = 86_400.0

BodyOf = Callable[[int], dict[str, Any]]


@contextmanager
def endpoint(seconds: float) -> Iterator[str]:
    """Serve an endpoint that takes this long for each answer; yields its address."""
    command = [sys.executable, "-m", "benchmarks.harness.batch.fast_endpoint", str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None:
            raise BenchmarkError("the endpoint has no output")
        yield process.stdout.readline().strip()
        process.kill()


def statistics(address: str) -> dict[str, float]:
    """Return the requests that an endpoint got since the last call, and the seconds of the middle ones."""
    with urllib.request.urlopen(f"{address}/statistics") as answer:  # noqa: S310 - our own address
        found: dict[str, float] = json.load(answer)
        return found


def check_lives(*workers: subprocess.Popen[bytes]) -> None:
    """Make sure that workers run. Raises BenchmarkError if one has ended."""
    for worker in workers:
        if worker.poll() is not None:
            raise BenchmarkError(f"a worker ended by itself with {worker.returncode}")


def short_prompt(number: int) -> dict[str, Any]:
    """Return a body with a prompt of some sixty words.

    number: Of the line; no two have the same prompt.
    """
    return {"messages": [{"role": "user", "content": f"{number} " + "word " * 60}], "max_tokens": 40}


def shard_lines(count: int, shard: int, body_of: BodyOf = short_prompt) -> Iterator[ShardLine]:
    """Yield the lines of a shard.

    shard: Which shard; no line is in two.
    body_of: Makes a line's body of its number.
    """
    for ordinal in range(count):
        number = shard * count + ordinal
        yield ShardLine(
            ordinal=ordinal, line=number + 1, custom_id=f"{number}", tokens=61, body=body_of(number)
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A job whose shards can be sent."""

    emulator: Emulator
    directory: Path
    queue: str
    machine: str
    """The state machine that has a task for each shard."""
    shards: tuple[str, ...]
    """Names of the job's shards."""

    def submit(self) -> str:
        """Start the tasks and return their execution."""
        started = self.emulator.client("stepfunctions").start_execution(
            stateMachineArn=self.machine, input=json.dumps({"shards": self.shards})
        )
        return str(started["executionArn"])

    def is_running(self, execution: str) -> bool:
        """Return whether shards are left. Raises BenchmarkError if a task failed."""
        state = self.emulator.client("stepfunctions").describe_execution(executionArn=execution)
        if state["status"] not in {"RUNNING", "SUCCEEDED"}:
            raise BenchmarkError(f"the job ended as {state['status']}: {state.get('cause')}")
        return bool(state["status"] == "RUNNING")

    def start_worker(self, address: str, settings: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a worker.

        settings: Variables of the worker.
        """
        with (self.directory / f"worker-{time.monotonic_ns()}.log").open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "batch.worker"],
                cwd=self.directory,
                env={
                    **os.environ,
                    **self.emulator.environment(),
                    "PYTHONPATH": str(ROOT / "runtime"),
                    "BATCH_QUEUE_URL": self.queue,
                    "BATCH_BUCKET": _BUCKET,
                    "BATCH_ENDPOINT": address,
                    "BATCH_MODEL": "model",
                    "BATCH_POLL_SECONDS": "1",
                    "BATCH_LATENCY_PERCENT": "0",
                    **settings,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def done(self) -> list[ShardDone]:
        """Return what became of each shard."""
        keys = JobKeys(_JOB)
        return [ShardDone.from_json(self._read(keys.shard(shard).done)) for shard in self.shards]

    def rows(self) -> int:
        """Return how many rows are committed, of shards that are done or not."""
        s3 = self.emulator.client("s3")
        prefixes = [JobKeys(_JOB).shard(shard).chunks for shard in self.shards]
        pages = (s3.list_objects_v2(Bucket=_BUCKET, Prefix=prefix) for prefix in prefixes)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return sum(self._read(key).count(b"\n") for key in keys)

    def custom_ids(self) -> Iterator[int]:
        """Yield the line of every row of the output and of the error files."""
        for shard in self.shards:
            keys = JobKeys(_JOB).shard(shard)
            for key in (keys.output, keys.error):
                for row in self._read(key).splitlines():
                    yield int(json.loads(row)["custom_id"])

    def _read(self, key: str) -> bytes:
        return bytes(self.emulator.client("s3").get_object(Bucket=_BUCKET, Key=key)["Body"].read())


@contextmanager
def stage(directory: Path, shards: int, lines: int, body_of: BodyOf = short_prompt) -> Iterator[Stage]:
    """Run the emulator with a job.

    shards, lines: Shards, and lines of each.
    body_of: Makes the body of each line.
    """
    with Emulator(directory, region=_REGION) as emulator:
        s3 = emulator.client("s3")
        s3.create_bucket(Bucket=_BUCKET, CreateBucketConfiguration={"LocationConstraint": _REGION})
        queue = emulator.client("sqs").create_queue(QueueName="shards")["QueueUrl"]
        machine = emulator.client("stepfunctions").create_state_machine(
            name="shards",
            definition=json.dumps(_definition(queue)),
            roleArn=f"arn:aws:iam::{emulator.account}:role/states",
        )["stateMachineArn"]
        keys, names = JobKeys(_JOB), tuple(f"{number:05d}" for number in range(shards))
        description = JobDescription(
            job=_JOB,
            team="team",
            model="model",
            endpoint="/v1/chat/completions",
            deadline=time.time() + _DEADLINE_SECONDS,
        )
        s3.put_object(Bucket=_BUCKET, Key=keys.description, Body=description.to_json().encode())
        for number, name in enumerate(names):
            content = "".join(line.to_json() + "\n" for line in shard_lines(lines, number, body_of))
            s3.put_object(Bucket=_BUCKET, Key=keys.shard(name).lines, Body=content.encode())
        yield Stage(emulator, directory, queue, machine, names)


def _definition(queue: str) -> dict[str, Any]:
    message = f"{{% {{'job': '{_JOB}', 'shard': $states.input, 'taskToken': $states.context.Task.Token}} %}}"
    send = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Arguments": {"QueueUrl": queue, "MessageBody": message},
        "End": True,
    }
    shards = {
        "Type": "Map",
        "Items": "{% $states.input.shards %}",
        "ItemProcessor": {"StartAt": "Send", "States": {"Send": send}},
        "End": True,
    }
    return {"QueryLanguage": "JSONata", "StartAt": "Shards", "States": {"Shards": shards}}
