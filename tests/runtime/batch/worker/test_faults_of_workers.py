"""Workers are killed, hang, are told to stop, get a message twice: each line still has one result."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from typing import Any

import pytest
from aiohttp import web

from inference_local.emulator.emulator import Emulator
from tests.runtime.batch.worker.aws_proxy import AwsProxy, Call, Forward, refused
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.fake_endpoint import Gate, after, drip
from tests.runtime.batch.worker.jobs import Job, lines, put_job, wait_until

pytestmark = pytest.mark.faults

IN_FLIGHT = {"BATCH_IN_FLIGHT_START": "8", "BATCH_IN_FLIGHT_MOST": "8"}


def committed(job: Job, minimum: int) -> Any:
    return lambda: len(job.committed()) >= minimum


def test_a_worker_that_is_killed_is_followed_where_it_was(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = gate = Gate(80)
    job = put_job(s3, {"00000": lines(400)})
    execution = stage.submit(job)
    first = stage.start(IN_FLIGHT)
    wait_until(committed(job, 80), "the first chunks")
    wait_until(lambda: stage.endpoint.number == 88, "as many requests in flight as may be")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    gate.open()
    stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    # Sent again is what was in flight, and nothing that was kept.
    assert stage.endpoint.number == 400 + 8
    assert max(stage.endpoint.asked.values()) == 2


def test_workers_that_are_killed_at_random_lose_and_double_nothing(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = after(0.02)
    job = put_job(s3, {f"{number:05d}": lines(250, f"{number}/") for number in range(4)})
    execution = stage.submit(job)
    chance = random.Random(7)  # noqa: S311 - a choice, not a key
    workers = [stage.start(IN_FLIGHT) for _ in range(2)]
    for _ in range(6):
        time.sleep(chance.uniform(0.5, 1.5))
        victim = chance.randrange(len(workers))
        workers[victim].process.kill()
        workers[victim].process.wait()
        workers[victim] = stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()


@pytest.mark.parametrize("arrives", ["before", "after"])
def test_a_worker_is_killed_while_its_chunk_is_on_the_way(
    stage: Stage, s3: Any, batch_emulator: Emulator, arrives: str
) -> None:
    """The chunk is in S3 before its writer is killed, or long after another has gone on."""
    held, release = threading.Event(), threading.Event()

    async def hold_first_chunk(call: Call, forward: Forward) -> web.StreamResponse:
        is_first = call.operation == "PUT" and "/chunks/" in call.path and not held.is_set()
        if not is_first:
            return await forward()
        if arrives == "before":
            await forward()
        held.set()
        while not release.is_set():
            await asyncio.sleep(0.02)
        return await forward()

    job = put_job(s3, {"00000": lines(60)})
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = hold_first_chunk
        execution = stage.submit(job)
        first = stage.start(IN_FLIGHT | proxy.environment)
        wait_until(held.is_set, "the first chunk")
        first.process.kill()
        first.process.wait()
        stage.start(IN_FLIGHT)
        if arrives == "before":
            assert stage.wait(execution)["status"] == "SUCCEEDED"
        else:
            wait_until(committed(job, 20), "the other's chunks")
        release.set()
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()


def test_a_worker_that_hangs_and_wakes_adds_nothing(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = gate = Gate(30, after(0.02))
    job = put_job(s3, {"00000": lines(300)})
    execution = stage.submit(job)
    first = stage.start(IN_FLIGHT)
    wait_until(committed(job, 30), "the first chunks")
    first.process.send_signal(signal.SIGSTOP)
    # Its message comes back when it was not extended.
    second = stage.start(IN_FLIGHT)
    wait_until(lambda: second.logged("shard_taken"), "the message to come back")
    gate.open()
    first.process.send_signal(signal.SIGCONT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    wait_until(lambda: first.logged("shard_done") or first.logged("task_gone"), "the first to let go")
    assert sorted(row["id"] for row in job.committed()) == sorted({row["id"] for row in job.committed()})


def test_a_message_that_comes_twice_is_no_second_result(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = after(0.02)
    job = put_job(s3, {"00000": lines(200)})
    sqs = stage.emulator.client("sqs")
    execution = stage.submit(job)
    messages: list[dict[str, Any]] = []

    def received() -> bool:
        answer = sqs.receive_message(QueueUrl=stage.queue_url, VisibilityTimeout=0, WaitTimeSeconds=1)
        messages.extend(answer.get("Messages", []))
        return bool(messages)

    wait_until(received, "the message")
    sqs.send_message(QueueUrl=stage.queue_url, MessageBody=messages[0]["Body"])
    workers = [stage.start(IN_FLIGHT), stage.start(IN_FLIGHT)]
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    # Whoever has the other message finds nothing left to do or to tell, and deletes it.
    wait_until(lambda: stage.messages() == 0, "both messages to be worked off")
    job.check()
    identifiers = [row["id"] for row in job.committed()]
    assert len(identifiers) == len(set(identifiers))
    for worker in workers:
        worker.stop()
    taken = [event for worker in workers for event in worker.events if event.get("event") == "shard_taken"]
    assert len(taken) >= 2


def test_sigterm_ends_what_is_in_flight_and_gives_the_shard_back(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = gate = Gate(20)
    job = put_job(s3, {"00000": lines(100)})
    execution = stage.submit(job)
    first = stage.start(IN_FLIGHT)
    wait_until(lambda: stage.endpoint.number == 28, "as many requests in flight as may be")
    first.process.terminate()
    wait_until(lambda: first.logged("draining"), "the drain")
    gate.open()
    first.stop()
    # What was in flight was answered, and is kept.
    assert len(job.committed()) == stage.endpoint.number == 28
    second = stage.start(IN_FLIGHT)
    wait_until(lambda: second.logged("shard_taken"), "the shard")
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    assert stage.endpoint.number == 100


def test_a_shard_that_takes_longer_than_a_message_lasts_goes_on_under_another(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = gate = Gate(20)
    job = put_job(s3, {"00000": lines(100)})
    execution = stage.submit(job)
    worker = stage.start(IN_FLIGHT | {"BATCH_HOLD_SECONDS": "1"})
    wait_until(lambda: worker.logged("hold_ended"), "the worker to let go")
    gate.open()
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    taken = [event["received"] for event in worker.events if event.get("event") == "shard_taken"]
    assert taken == list(range(1, len(taken) + 1))
    assert len(taken) >= 2
    # What was in flight was answered and kept, so nothing is sent again.
    assert stage.endpoint.number == 100


def test_a_drain_does_not_wait_for_ever(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = drip
    job = put_job(s3, {"00000": lines(20)})
    execution = stage.submit(job)
    first = stage.start(IN_FLIGHT | {"BATCH_DRAIN_SECONDS": "1"})
    wait_until(lambda: stage.endpoint.in_flight >= 8, "requests in flight")
    first.stop(seconds=30)
    stage.endpoint.behaviour = after(0)
    stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_task_that_nobody_waits_for_is_let_go(
    stage: Stage, s3: Any, batch_emulator: Emulator, code: str
) -> None:
    """What Step Functions says to a heartbeat when the job was cancelled; the emulator never does."""
    gone = threading.Event()

    async def refuse_heartbeats(call: Call, forward: Forward) -> web.StreamResponse:
        if gone.is_set() and call.operation == "SendTaskHeartbeat":
            return refused(code)
        return await forward()

    stage.endpoint.behaviour = after(0.2)
    job = put_job(s3, {"00000": lines(2000)})
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = refuse_heartbeats
        stage.submit(job)
        worker = stage.start(IN_FLIGHT | proxy.environment)
        wait_until(committed(job, 8), "the first chunk")
        gone.set()
        wait_until(lambda: worker.logged("task_gone"), "the worker to notice")
        wait_until(lambda: stage.endpoint.in_flight == 0, "its requests to end")
        worker.stop()
    sent = stage.endpoint.number
    # What was paid for is kept; the message is gone, and nobody begins again.
    identifiers = [row["id"] for row in job.committed()]
    assert len(identifiers) == len(set(identifiers))
    assert sent - 8 <= len(identifiers) <= sent
    assert stage.messages() == 0


def test_a_shard_that_is_done_is_not_asked_for_again(stage: Stage, s3: Any) -> None:
    job = put_job(s3, {"00000": lines(20)})
    stage.start()
    assert stage.wait(stage.submit(job))["status"] == "SUCCEEDED"
    assert stage.wait(stage.submit(job))["status"] == "SUCCEEDED"
    job.check()
    assert stage.endpoint.number == 20
