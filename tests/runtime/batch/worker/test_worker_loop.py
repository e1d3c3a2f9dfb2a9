"""The worker's loop in this process, from the queue to the parts: what it tells the task and the queue."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import boto3
import pytest
from aiohttp import web

from batch.worker import worker_loop
from batch.worker.bucket_client import Clients
from batch.worker.settings import read_settings
from batch.worker.worker_loop import run_worker
from inference_contracts.batch_keys import JobKeys
from inference_contracts.platform_keys import write_keys
from tests.runtime.batch.worker.fake_endpoint import Asked, FakeEndpoint, Gate, status, well
from tests.runtime.batch.worker.jobs import BUCKET, MODEL, Job, lines, put_job


@dataclass
class Tasks:
    """Step Functions, as far as a worker asks it. The worker is stopped after a number of answers."""

    wanted: int
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    succeeded: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def send_task_heartbeat(self, **_: str) -> None:
        """Do nothing."""

    def send_task_success(self, **values: str) -> None:
        self.succeeded.append(values["taskToken"])
        self._count()

    def send_task_failure(self, **values: str) -> None:
        self.failed.append((values["taskToken"], values["error"]))
        self._count()

    def _count(self) -> None:
        if len(self.succeeded) + len(self.failed) == self.wanted:
            self._loop.call_soon_threadsafe(self.stop.set)

    async def work(self, environment: dict[str, str], s3: Any, sqs: Any) -> None:
        """Let a worker work until all tasks have their answers."""
        self._loop = asyncio.get_running_loop()
        clients = Clients(s3, sqs, self, boto3.client("dynamodb"), boto3.client("secretsmanager"))
        await run_worker(read_settings(environment), clients, self.stop)


@dataclass
class Place:
    """A queue, a bucket and an endpoint."""

    s3: Any
    sqs: Any
    queue: str
    endpoint: FakeEndpoint

    def send(self, job: Job) -> None:
        for shard in job.shards:
            body = {"job": job.name, "shard": shard, "taskToken": f"token of {shard}"}
            self.sqs.send_message(QueueUrl=self.queue, MessageBody=json.dumps(body))

    def work(self, tasks: Tasks, **variables: str) -> None:
        environment = {
            "BATCH_QUEUE_URL": self.queue,
            "BATCH_BUCKET": BUCKET,
            "BATCH_ENDPOINT": self.endpoint.url,
            "BATCH_MODEL": MODEL,
            "BATCH_POLL_SECONDS": "0",
            "BATCH_FLUSH_MILLISECONDS": "1",
            **variables,
        }
        asyncio.run(tasks.work(environment, self.s3, self.sqs))

    def messages(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=names)["Attributes"]
        return sum(map(int, found.values()))


def tell_time(parsed: dict[str, Any], **_: object) -> None:
    """Answer with S3's clock, which the emulation leaves out."""
    parsed["ResponseMetadata"]["HTTPHeaders"]["date"] = formatdate(usegmt=True)


@pytest.fixture
def place(aws: dict[str, str]) -> Iterator[Place]:
    s3, sqs = boto3.client("s3"), boto3.client("sqs")
    s3.meta.events.register("after-call.s3.GetObject", tell_time)
    with FakeEndpoint() as endpoint:
        yield Place(s3, sqs, sqs.create_queue(QueueName="shards-of-qwen")["QueueUrl"], endpoint)


def test_each_line_is_asked_once_and_each_task_is_told(place: Place) -> None:
    job = put_job(place.s3, {f"{number:05d}": lines(30, f"{number}/") for number in range(2)})
    place.send(job)
    tasks = Tasks(wanted=2)
    place.work(tasks)
    job.check()
    assert sorted(tasks.succeeded) == ["token of 00000", "token of 00001"]
    assert (tasks.failed, place.messages()) == ([], 0)
    assert set(place.endpoint.asked.values()) == {1}


def test_a_shard_that_is_not_there_fails_its_task_and_others_go_on(place: Place) -> None:
    job = put_job(place.s3, {"00000": lines(5), "00001": lines(5)})
    place.s3.delete_object(Bucket=BUCKET, Key=JobKeys(job.name).shard("00000").lines)
    place.sqs.send_message(QueueUrl=place.queue, MessageBody="{}")
    place.send(job)
    tasks = Tasks(wanted=2)
    place.work(tasks)
    assert tasks.failed == [("token of 00000", "MissingObjectError")]
    assert tasks.succeeded == ["token of 00001"]
    assert place.messages() == 1, "what is no shard is left to the dead letters"


# A queue whose deployments always have workers, beside one that has some at times.


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    monkeypatch.setattr(worker_loop, "_WORKERS_SECONDS", 0.0)
    with FakeEndpoint() as endpoint:
        yield endpoint


def work_with(place: Place, lent: FakeEndpoint, shards: int) -> Tasks:
    job = put_job(place.s3, {f"{number:05d}": lines(30, f"{number}/") for number in range(shards)})
    place.send(job)
    tasks = Tasks(wanted=shards)
    # Otherwise one deployment may take all of them first.
    place.work(tasks, BATCH_LENT_ENDPOINTS=lent.url, BATCH_SHARDS_AT_ONCE="1")
    job.check()
    assert (len(tasks.succeeded), tasks.failed, place.messages()) == (shards, [], 0)
    return tasks


@pytest.mark.parametrize("models", [[], ["other"], None], ids=["none", "another", "no list"])
def test_a_deployment_without_workers_gets_no_request(
    place: Place, lent: FakeEndpoint, models: list[str] | None
) -> None:
    """Red if requests go to a frontend that has no worker: each would fail and be sent again."""
    lent.models = models
    work_with(place, lent, shards=3)
    assert (place.endpoint.number, lent.number) == (90, 0)
    assert lent.listed > 0


def test_through_the_door_a_deployment_without_workers_gives_its_shards_to_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if a shard stays where the door reaches nobody, or if a lane has no name of its own at the door."""
    monkeypatch.setattr(worker_loop, "_WORKERS_SECONDS", 0.02)
    secret = boto3.client("secretsmanager").create_secret(
        Name="keys-of-batch", SecretString=write_keys({"ads": "its key"})
    )
    asked: Counter[str] = Counter()
    nobody = status(503, {"error": {"message": "no", "code": "model_unavailable"}}, Retry_After="1")
    is_left = asyncio.Event()

    async def door(each: Asked) -> web.StreamResponse:
        assert each.request.headers["Authorization"] == "Bearer its key"
        asked[each.body["model"]] += 1
        if each.body["model"] == "batch:qwen/night":
            is_left.set()
            return await nobody(each)
        await is_left.wait()  # otherwise this lane may take all of them first
        return await well(each)

    place.endpoint.behaviour = door
    job = put_job(place.s3, {f"{number:05d}": lines(30, f"{number}/") for number in range(3)})
    place.send(job)
    tasks = Tasks(wanted=3)
    variables = {"DOOR_KEYS_SECRET": secret["ARN"], "BATCH_LENT_DEPLOYMENTS": "night"}
    place.work(tasks, BATCH_SHARDS_AT_ONCE="1", **variables)
    job.check()
    assert (len(tasks.succeeded), tasks.failed, place.messages()) == (3, [], 0)
    assert asked["batch:qwen"] == 90
    assert asked["batch:qwen/night"] > 0
    assert asked.keys() == {"batch:qwen", "batch:qwen/night"}


def test_a_deployment_with_workers_takes_shards_of_its_own(place: Place, lent: FakeEndpoint) -> None:
    """Red if all work waits for one deployment: that one answers nothing before the other has answered."""
    lent.models = [MODEL]
    gate = Gate(0)
    place.endpoint.behaviour = gate

    async def opening(asked: Asked) -> web.StreamResponse:
        gate.open()
        return await well(asked)

    lent.behaviour = opening
    work_with(place, lent, shards=8)
    assert lent.number > 0
    assert place.endpoint.number + lent.number == 240


def test_a_deployment_that_loses_its_workers_gives_its_shards_back(place: Place, lent: FakeEndpoint) -> None:
    """Red if its shards wait for workers that come in the evening, or answers that it gave are asked again.

    The other deployment answers nothing before this one has lost its workers.
    """
    lent.models = [MODEL]
    gate, leaving = Gate(0), Gate(10)
    place.endpoint.behaviour, lent.behaviour = gate, leaving

    async def lose() -> None:
        while lent.number <= 10:
            await asyncio.sleep(0.001)
        lent.models = []
        looked = lent.listed
        while lent.listed == looked:
            await asyncio.sleep(0.001)
        leaving.open()
        gate.open()

    losing = asyncio.run_coroutine_threadsafe(lose(), lent._loop)
    work_with(place, lent, shards=4)
    losing.result(10)
    assert lent.number > 10
    assert place.endpoint.number + lent.number == 120
    assert set(place.endpoint.asked) & set(lent.asked) == set()
