"""Images of answers become objects: whatever fails before the commit, none is lost or doubled."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
import threading
from collections import Counter
from typing import Any, cast

import pytest
from aiohttp import web

from batch.contracts.generated_image import GeneratedImage
from batch.contracts.shard import ShardLine
from batch.worker.answer_images import AnswerImages
from batch.worker.bucket_client import BucketClient
from batch.worker.retry_budget import MemoryBudget
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_local.emulator.emulator import Emulator
from inference_local.serving.direct.scripted_images import scripted_png
from tests.runtime.batch.worker.aws_proxy import AwsProxy, Call, Forward, slow_down
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.fake_endpoint import Asked, Behaviour, Gate, after, status
from tests.runtime.batch.worker.jobs import BUCKET, Job, put_job, wait_until
from tests.runtime.batch.worker.turned_loop import turn

pytestmark = pytest.mark.faults

IN_FLIGHT = {"BATCH_IN_FLIGHT_START": "4", "BATCH_IN_FLIGHT_MOST": "4"}
PNG = scripted_png(16, 16, "a", 1, 0)


def image_lines(count: int, **body: Any) -> list[ShardLine]:
    return [
        ShardLine(
            ordinal=ordinal,
            line=ordinal + 1,
            custom_id=f"product/{ordinal}",
            tokens=3,
            body={"model": "any", "prompt": f"a cup {ordinal}", "size": "32x16", **body},
        )
        for ordinal in range(count)
    ]


def put_images(s3: Any, count: int, name: str, **body: Any) -> Job:
    """Write a job of one shard. Its name has the form of a real one."""
    name = f"batch_{name.encode().hex():0<32.32}"
    return put_job(s3, {"000000-0000-0-000": image_lines(count, **body)}, name=name, endpoint=IMAGES_PATH)


def made(asked: Asked, number: int) -> bytes:
    """Return an image of a request: it follows from prompt and seed."""
    return scripted_png(32, 16, asked.body["prompt"], asked.body["seed"], number)


async def images(asked: Asked) -> web.StreamResponse:
    data = [
        {"b64_json": base64.b64encode(made(asked, number)).decode(), "revised_prompt": None}
        for number in range(asked.body.get("n", 1))
    ]
    return web.json_response({"created": 7, "data": data, "output_format": "png", "size": "32x16"})


def data(*entries: object) -> Behaviour:
    return status(200, {"created": 7, "data": list(entries), "size": "32x16"})


def stored(job: Job) -> dict[str, bytes]:
    """Return all images of a job by key."""
    pages = job.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=job.keys.images)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    return {key: job.object(key) or b"" for key in keys}


def check(stage: Stage, job: Job, *, per_line: int = 1) -> None:
    """Make sure that each line has one row, and each row its own images, and that there are no others."""
    [shard] = job.shards
    output, error = job.rows(shard)
    assert error == []
    assert Counter(row["custom_id"] for row in output) == Counter(job.shards[shard])
    seeds = {body["prompt"]: body["seed"] for body in stage.endpoint.bodies.values()}
    found = stored(job)
    for row in output:
        ordinal = int(row["id"].rpartition("_")[2])
        prompt, body = f"a cup {ordinal}", row["response"]["body"]
        assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 2 * per_line}
        assert len(body["data"]) == per_line
        for number, entry in enumerate(body["data"]):
            image = GeneratedImage.of_file_id(entry["file_id"])
            assert image == GeneratedImage(job.name, shard, ordinal, number, "png")
            assert entry["uri"] == f"s3://{BUCKET}/{image.key}"
            content = found.pop(image.key)
            assert content == scripted_png(32, 16, prompt, seeds[prompt], number)
            assert (entry["media_type"], entry["bytes"]) == ("image/png", len(content))
    assert found == {}
    assert job.done(shard) is not None


def test_rows_name_the_images(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = images
    job = put_images(s3, 12, "named", n=3)
    execution = stage.submit(job)
    stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    check(stage, job, per_line=3)
    [shard] = job.shards
    assert b"b64_json" not in (job.object(job.keys.shard(shard).output) or b"")
    head = s3.head_object(Bucket=BUCKET, Key=job.keys.shard(shard).image(0, 2, "png"))
    assert head["ContentType"] == "image/png"


#: Answers that do not contain the image of their request.
WRONG: tuple[Behaviour, ...] = (
    data(),
    data({"url": "http://server/1.png"}),
    data({"b64_json": ""}),
    data({"b64_json": base64.b64encode(PNG).decode()[:-3]}),
    data({"b64_json": "ä" * 8}),
    data({"b64_json": base64.b64encode(b"\xff\xd8\xff a photograph").decode()}),
    data({"b64_json": base64.b64encode(b"<html>").decode()}),
    data(*[{"b64_json": base64.b64encode(PNG).decode()}] * 2),
    status(200, {"created": 7, "data": None}),
)


def test_an_answer_without_the_image_is_asked_for_again(stage: Stage, s3: Any) -> None:
    async def wrong_at_first(asked: Asked) -> web.StreamResponse:
        if asked.attempt:
            return await images(asked)
        return await WRONG[int(asked.body["prompt"].rpartition(" ")[2])](asked)

    stage.endpoint.behaviour = wrong_at_first
    job = put_images(s3, len(WRONG), "again")
    execution = stage.submit(job)
    stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    check(stage, job)
    assert set(stage.endpoint.asked.values()) == {2}


def test_a_line_that_never_gets_its_image_is_an_error(stage: Stage, s3: Any) -> None:
    page = base64.b64encode(b"<html>").decode()

    async def one_is_wrong(asked: Asked) -> web.StreamResponse:
        if asked.body["prompt"] != "a cup 1":
            return await images(asked)
        # Others are answered meanwhile, so the line is to blame and not the endpoint.
        return await after(1.0, data({"b64_json": page}))(asked)

    stage.endpoint.behaviour = one_is_wrong
    job = put_images(s3, 3, "never")
    execution = stage.submit(job)
    stage.start({**IN_FLIGHT, "BATCH_ATTEMPTS": "1"})
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    [shard] = job.shards
    output, [error] = job.rows(shard)
    assert len(output) == 2
    assert error["custom_id"] == "product/1"
    assert error["error"]["code"] == "endpoint_error"
    assert "image 0 is not png: it begins with 3c 68 74 6d 6c 3e" in error["error"]["message"]
    assert len(stored(job)) == 2


def test_a_throttled_upload_is_repeated(stage: Stage, s3: Any, batch_emulator: Emulator) -> None:
    refused: set[str] = set()

    async def throttle(call: Call, forward: Forward) -> web.StreamResponse:
        if call.operation == "PUT" and "/images/" in call.path and call.path not in refused:
            refused.add(call.path)
            return slow_down()
        return await forward()

    stage.endpoint.behaviour = images
    job = put_images(s3, 6, "throttled", n=2)
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = throttle
        execution = stage.submit(job)
        stage.start(IN_FLIGHT | proxy.environment)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    assert len(refused) == 12
    check(stage, job, per_line=2)
    assert stage.endpoint.number == 6


def test_an_image_that_s3_refuses_is_an_error_of_its_line(
    stage: Stage, s3: Any, batch_emulator: Emulator
) -> None:
    # A denial would concern the platform's own bucket: then the shard is tried again, and no line has ended.
    async def refuse(call: Call, forward: Forward) -> web.StreamResponse:
        if call.operation == "PUT" and re.search(r"/images/.*/1-0\.png", call.path):
            text = "<Error><Code>EntityTooLarge</Code><Message>too large</Message></Error>"
            return web.Response(status=400, text=text, content_type="application/xml")
        return await forward()

    stage.endpoint.behaviour = images
    job = put_images(s3, 3, "denied")
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = refuse
        execution = stage.submit(job)
        stage.start(IN_FLIGHT | proxy.environment)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    [shard] = job.shards
    output, [error] = job.rows(shard)
    assert len(output) == 2
    assert error["error"]["code"] == "image_not_stored"
    assert job.keys.shard(shard).image(1, 0, "png") in error["error"]["message"]
    assert stage.endpoint.number == 3


def test_a_worker_is_killed_between_an_upload_and_its_commit(
    stage: Stage, s3: Any, batch_emulator: Emulator
) -> None:
    """Another worker asks again with the same seed, and replaces the objects with the same images."""
    held, release = threading.Event(), threading.Event()

    async def hold_chunks(call: Call, forward: Forward) -> web.StreamResponse:
        if call.operation == "PUT" and "/chunks/" in call.path and not release.is_set():
            held.set()
            while not release.is_set():
                await asyncio.sleep(0.02)
            return web.Response(status=500)
        return await forward()

    stage.endpoint.behaviour = gate = Gate(8, images)
    job = put_images(s3, 12, "killed", n=2)
    with AwsProxy(batch_emulator.endpoint_url) as proxy:
        proxy.hook = hold_chunks
        execution = stage.submit(job)
        killed = stage.start(IN_FLIGHT | proxy.environment)
        wait_until(held.is_set, "the first commit")
        wait_until(lambda: len(stored(job)) == 16, "the images of eight lines")
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        [shard] = job.shards
        assert job.committed(shard) == []
        release.set()
        gate.open()
        stage.start(IN_FLIGHT | proxy.environment)
        assert stage.wait(execution)["status"] == "SUCCEEDED"
    check(stage, job, per_line=2)
    assert max(stage.endpoint.asked.values()) == 2


def test_an_answer_holds_memory_until_its_images_are_written() -> None:
    async def go() -> None:
        writer = AnswerImages(cast("BucketClient", None), MemoryBudget(1000)).of_shard("job", "shard")
        with writer.held() as first:
            await first.room(200)
            with writer.held() as second:
                waiting = asyncio.create_task(second.room(200))
                await asyncio.sleep(60)
                assert not waiting.done()
                first.let_go()
                await asyncio.wait_for(waiting, 5)
        await asyncio.wait_for(writer.shared.memory.take(1000), 5)

    turn(go())


def test_answers_that_fill_the_memory_are_all_read(stage: Stage, s3: Any) -> None:
    """Four answers are offered at once, and the memory has room for one."""
    large = PNG + bytes(400_000)
    stage.endpoint.behaviour = data({"b64_json": base64.b64encode(large).decode()})
    job = put_images(s3, 12, "memory")
    execution = stage.submit(job)
    stage.start({**IN_FLIGHT, "BATCH_MEMORY_MIB": "1"})
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    [shard] = job.shards
    output, error = job.rows(shard)
    assert (len(output), error) == (12, [])
    assert [len(content) for content in stored(job).values()] == [len(large)] * 12


def test_an_error_of_the_server_stays_as_it_is(stage: Stage, s3: Any) -> None:
    stage.endpoint.behaviour = status(400, {"error": {"message": "too many pixels", "code": 400}})
    job = put_images(s3, 1, "refused")
    execution = stage.submit(job)
    stage.start(IN_FLIGHT)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    [shard] = job.shards
    output, [error] = job.rows(shard)
    assert output == []
    assert error["response"]["body"]["error"]["message"] == "too many pixels"
    assert json.loads(job.object(job.keys.description) or b"{}")["endpoint"] == IMAGES_PATH
