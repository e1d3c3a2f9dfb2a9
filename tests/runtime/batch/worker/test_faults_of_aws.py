"""S3, SQS and Step Functions that throttle, lose answers and cut connections, below botocore itself."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import psutil
import pytest
from aiohttp import web

from batch.contracts.shard import ShardLine
from inference_contracts.batch_keys import JobKeys
from inference_local.emulator.emulator import Emulator
from tests.runtime.batch.worker.aws_proxy import AwsProxy, Call, Forward, refused, slow_down
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.fake_endpoint import after
from tests.runtime.batch.worker.jobs import BUCKET, lines, put_job, wait_until

pytestmark = pytest.mark.faults


IN_FLIGHT = {"BATCH_IN_FLIGHT_START": "16", "BATCH_IN_FLIGHT_MOST": "16"}
MIB = 2**20


def padded(count: int, size: int) -> list[ShardLine]:
    """Return lines that are as long as this."""
    return [replace(line, body={**(line.body or {}), "padding": "x" * size}) for line in lines(count)]


def test_throttling_is_waited_for(stage: Stage, s3: Any, batch_emulator: Emulator) -> None:
    asked = Counter[tuple[str, str]]()

    async def throttle(call: Call, forward: Forward) -> web.StreamResponse:
        # Every second of the same, lest one call be refused whenever it is tried.
        asked[call.operation, call.path] += 1
        if asked[call.operation, call.path] % 2 == 0 or call.operation == "POST":
            return await forward()
        return slow_down() if call.operation in {"GET", "PUT"} else refused("ThrottlingException")

    stage.endpoint.behaviour = after(0.02)
    job = put_job(s3, {"00000": lines(100), "00001": lines(100, "1/")})
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = throttle
        execution = stage.submit(job)
        stage.start(IN_FLIGHT | proxy.environment)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
        assert {"GET", "PUT", "ReceiveMessage", "SendTaskSuccess"} <= proxy.calls.keys()
    job.check()
    assert stage.endpoint.number == 200


def test_a_chunk_whose_answer_was_lost_is_not_written_again(
    stage: Stage, s3: Any, batch_emulator: Emulator
) -> None:
    """S3 wrote it, the connection broke, botocore asks again and is told that it is there."""
    lost: list[str] = []

    async def lose_answers(call: Call, forward: Forward) -> web.StreamResponse:
        answer = await forward()
        if call.operation == "PUT" and "/chunks/" in call.path and call.path not in lost:
            lost.append(call.path)
            return slow_down()
        return answer

    stage.endpoint.behaviour = after(0.05)
    job = put_job(s3, {"00000": lines(200)})
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = lose_answers
        execution = stage.submit(job)
        stage.start(IN_FLIGHT | proxy.environment)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    assert lost
    job.check()
    done = job.done()
    assert done is not None
    assert done["attempts"] == stage.endpoint.number == 200


def test_a_shard_that_breaks_off_is_read_on_where_it_was(
    stage: Stage, s3: Any, batch_emulator: Emulator
) -> None:
    ranges: list[str] = []

    async def break_off(call: Call, forward: Forward) -> web.StreamResponse:
        answer = await forward()
        if call.operation != "GET" or "/shards/" not in call.path:
            return answer
        ranges.append(call.headers.get("Range", ""))
        assert isinstance(answer.body, bytes)
        if len(answer.body) <= MIB:
            return answer
        # Promises all of it, sends a part, and is gone: what aiohttp does when less comes than was promised.
        broken = web.StreamResponse(status=answer.status, headers={"Content-Length": str(len(answer.body))})
        await broken.prepare(call.request)
        await broken.write(answer.body[: MIB // 2 + 7])
        assert call.request.transport is not None
        call.request.transport.close()
        return broken

    job = put_job(s3, {"00000": padded(300, 10_000)})
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = break_off
        execution = stage.submit(job)
        stage.start(IN_FLIGHT | proxy.environment)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    assert stage.endpoint.number == 300
    starts = [int(found[1]) for value in ranges if (found := re.match(r"bytes=(\d+)-", value))]
    assert len(starts) >= 3
    assert starts == sorted(starts)


def test_a_key_that_is_denied_in_mid_job_loses_and_doubles_nothing(
    stage: Stage, s3: Any, batch_emulator: Emulator
) -> None:
    """Red if a line is lost or doubled, or a worker ends, when somebody takes away the permission to use the
    platform's key while a job runs, and gives it back.

    S3 answers with the code of every denial (Amazon S3 User Guide, "Troubleshoot access
    denied errors", encryption), and DynamoDB with another one (aws/aws-cdk#10010). Queues have no such key.
    """
    denied = False
    chunks: list[str] = []
    s3_said = (
        "<Error><Code>AccessDenied</Code><Message>User: worker is not authorized to perform: "
        "kms:Decrypt on this resource because no key policy allows it</Message></Error>"
    )

    async def deny_key(call: Call, forward: Forward) -> web.StreamResponse:
        nonlocal denied
        if call.operation == "PUT" and "/chunks/" in call.path:
            chunks.append(call.path)
            denied = denied or len(chunks) == 3
        if denied and call.operation == "PutItem":
            return refused("AccessDeniedException")
        # A list of keys needs no key of KMS.
        if denied and (call.operation == "PUT" or (call.operation == "GET" and "/jobs/" in call.path)):
            return web.Response(status=403, text=s3_said)
        return await forward()

    stage.endpoint.behaviour = after(0.05)
    job = put_job(s3, {"00000": lines(200)})
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = deny_key
        execution = stage.submit(job)
        worker = stage.start(IN_FLIGHT | proxy.environment)

        def given_back() -> list[str]:
            return [each["reason"] for each in worker.events if each.get("event") == "shard_given_back"]

        wait_until(lambda: len(given_back()) == 1, "the shard to be given back")
        assert "AccessDenied" in given_back()[0]
        assert "kms:Decrypt" in given_back()[0]
        assert 0 < len(job.committed()) < 200
        assert worker.process.poll() is None
        denied = False
        chunks.clear()
        chunks.extend(["not again"] * 3)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()


def test_a_shard_that_is_not_there_fails_its_task(stage: Stage, s3: Any) -> None:
    job = put_job(s3, {"00000": lines(5)})
    s3.delete_object(Bucket=BUCKET, Key=JobKeys(job.name).shard("00000").lines)
    worker = stage.start()
    ended = stage.wait(stage.submit(job))
    assert (ended["status"], ended["error"]) == ("FAILED", "MissingObjectError")
    assert "shards/00000.jsonl" in ended["cause"]
    worker.stop()


def test_a_message_that_says_nothing_is_left_to_the_dead_letters(stage: Stage, s3: Any) -> None:
    stage.emulator.client("sqs").send_message(QueueUrl=stage.queue_url, MessageBody="{}")
    job = put_job(s3, {"00000": lines(5)})
    worker = stage.start()
    wait_until(lambda: worker.logged("message_unreadable"), "the message")
    assert stage.wait(stage.submit(job))["status"] == "SUCCEEDED"
    job.check()
    worker.stop()


def test_memory_does_not_grow_with_the_shard(stage: Stage, s3: Any) -> None:
    limits = {
        "BATCH_IN_FLIGHT_START": "4",
        "BATCH_IN_FLIGHT_MOST": "4",
        "BATCH_MEMORY_MIB": "4",
        "BATCH_FLUSH_KIB": "512",
    }

    def peak(megabytes: int) -> int:
        size = 200_000
        job = put_job(s3, {"00000": padded(megabytes * MIB // size, size)})
        execution = stage.submit(job)
        worker = stage.start(limits)
        watched, maximum = psutil.Process(worker.process.pid), 0
        while stage.state(execution)["status"] == "RUNNING":
            maximum = max(maximum, watched.memory_info().rss)
        job.check()
        worker.stop()
        return maximum

    small, large = peak(8), peak(160)
    # 160 MiB in the file, of which no more than a few pieces and the open lines are held.
    assert large - small < 24 * MIB
