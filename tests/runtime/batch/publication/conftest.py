"""A store in this process, and jobs with finished parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
import valkey

from batch.contracts.request import JobRequest, Publication
from batch.contracts.shard import ShardDone, ShardLine
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.objects import Objects
from batch.publication.publishing import Publisher
from inference_contracts.batch_keys import JobKeys
from signals.store import SignalWriter
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import NOW, make_job
from tests.runtime.signals.memory_server import MemoryServer, memory_server

HISTORY = "history-of-signals"
SIGNAL = "product-captions"


@pytest.fixture(scope="session")
def server() -> Iterator[MemoryServer]:
    with memory_server() as started:
        yield started


@pytest.fixture
def store(server: MemoryServer) -> Iterator[SignalWriter]:
    with valkey.Valkey(host="127.0.0.1", port=server.port) as client:
        client.flushall()
        yield SignalWriter(client)


@pytest.fixture
def objects(aws: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Objects:
    where = {"LocationConstraint": resources.REGION}
    boto3.client("s3").create_bucket(Bucket=HISTORY, CreateBucketConfiguration=where)
    monkeypatch.setenv("SIGNALS_HISTORY_BUCKET", HISTORY)
    return Objects(resources.BUCKET)


@pytest.fixture
def publisher(store: SignalWriter, objects: Objects) -> Publisher:
    return Publisher(store, objects, Objects(HISTORY))


@dataclass(frozen=True)
class Answered:
    """A line with the answer of the endpoint."""

    custom_id: str
    body: dict[str, Any]
    prompt: str = "What is this?"


def chat(custom_id: str, text: str | None, *, created: int = NOW, **more: Any) -> Answered:
    message = {"role": "assistant", "content": text}
    return Answered(custom_id, {"created": created, "choices": [{"message": message}]}, **more)


class Jobs:
    """Creates jobs that publish, with finished parts."""

    def __init__(self, platform: BatchPlatform, objects: Objects) -> None:
        self._platform = platform
        self._objects = objects

    def job(self, version: int = NOW * 1000, *, ttl_seconds: int = 10**9, signal: str = SIGNAL) -> Job:
        """Create a running job. Its signals expire after thirty years."""
        publication = Publication(signal, version, ttl_seconds)
        job = make_job(self._platform, publication=publication)
        request = JobRequest.from_json(self._objects.read(JobKeys(job.id).request))
        request = replace(request, publication=publication)
        self._objects.write(JobKeys(job.id).request, request.to_json().encode())
        return self._platform.jobs.move(job.id, "in_progress", before=["validating"], now=NOW)

    def part(self, job: Job, name: str, answers: list[Answered]) -> None:
        """Write a part with the answers in reverse order."""
        keys = JobKeys(job.id).part(name)
        lines = [
            ShardLine(ordinal, ordinal + 1, each.custom_id, 3, body={"messages": each.prompt})
            for ordinal, each in enumerate(answers)
        ]
        rows = [
            {
                "id": f"batch_req_{job.id}_{name.partition('.')[0]}_{ordinal}",
                "custom_id": each.custom_id,
                "response": {"status_code": 200, "request_id": "r", "body": each.body},
                "error": None,
            }
            for ordinal, each in enumerate(answers)
        ]
        self._write(keys.lines, [line.to_json() for line in lines])
        self._write(keys.output, [json.dumps(row) for row in reversed(rows)])
        self._objects.write(keys.done, ShardDone(name, len(rows), 0, len(rows)).to_json().encode())

    def _write(self, key: str, lines: list[str]) -> None:
        self._objects.write(key, "".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def jobs(platform_in_process: BatchPlatform, objects: Objects) -> Jobs:
    return Jobs(platform_in_process, objects)
