"""What is sent for a line: its body, with images of the team's own."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import boto3
import moto
import pytest

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardLine
from batch.worker.image_loader import ImageError, Images
from batch.worker.model_endpoint import InvalidLineError, ModelRequest, Requests
from batch.worker.retry_budget import MemoryBudget
from tests.runtime.batch.worker.turned_loop import turn

PICTURE = b"\x89PNG picture"
IMAGE_BYTES = 1000


@pytest.fixture
def client() -> Iterator[Any]:
    with moto.mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="team")
        client.put_object(Bucket="team", Key="ads/a.png", Body=PICTURE, ContentType="image/png")
        client.put_object(Bucket="team", Key="ads/b.jpg", Body=PICTURE, ContentType="binary/octet-stream")
        client.put_object(Bucket="team", Key="ads/notes", Body=b"text", ContentType="text/plain")
        client.put_object(Bucket="team", Key="ads/large.png", Body=bytes(IMAGE_BYTES + 1))
        client.put_object(Bucket="team", Key="ads-of-others/a.png", Body=PICTURE, ContentType="image/png")
        yield client


def requests(client: Any) -> Requests:
    description = JobDescription(
        job="job",
        team="ads",
        model="qwen",
        endpoint="/v1/chat/completions",
        deadline=0,
        data_prefixes=("s3://team/ads",),
    )
    images = Images(client, MemoryBudget(10_000), max_bytes=IMAGE_BYTES)
    return Requests(description, images)


def line(custom_id: str = "a", **values: Any) -> ShardLine:
    return ShardLine(ordinal=0, line=1, custom_id=custom_id, tokens=1, **values)


def question(text: str = "What is it?") -> dict[str, Any]:
    return {"max_tokens": 5, "messages": [{"role": "user", "content": text}]}


def make(made_by: Requests, asked: ShardLine) -> ModelRequest:
    return asyncio.run(made_by.make(asked))


def test_a_body_is_sent_to_the_job_s_model(client: Any) -> None:
    body = {"model": "alias", "messages": [{"role": "user", "content": "ü"}], "max_tokens": 3}
    request = make(requests(client), line(body=body))
    assert json.loads(request.body) == {**body, "model": "qwen"}


def test_equal_requests_and_no_others_have_the_same_key(client: Any) -> None:
    made = [
        make(requests(client), line(custom_id, body={"n": number})).idempotency_key
        for custom_id, number in (("a", 1), ("a", 1), ("b", 1), ("a", 2))
    ]
    assert made[0] == made[1]
    assert len(set(made)) == 3


def test_images_are_sent_whole(client: Any) -> None:
    images = ("s3://team/ads/a.png", "s3://team/ads/b.jpg")
    body = json.loads(make(requests(client), line(body=question(), images=images)).body)
    assert (body["model"], body["max_tokens"], body["messages"][0]["role"]) == ("qwen", 5, "user")
    content = body["messages"][0]["content"]
    encoded = base64.b64encode(PICTURE).decode()
    assert [part.get("image_url", {}).get("url") for part in content] == [
        f"data:image/png;base64,{encoded}",
        f"data:image/jpeg;base64,{encoded}",
        None,
    ]
    assert content[-1]["text"] == "What is it?"


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        ("s3://team/ads-of-others/a.png", "not below one of the team's dataPrefixes"),
        ("s3://team/ads", "not below one"),
        ("s3://other/ads/a.png", "not below one"),
        ("https://example.com/a.png", "must be an address such as s3://"),
        (7, "image 7 must be"),
        ("s3://team/ads/none.png", "NoSuchKey"),
        ("s3://team/ads/notes", "has neither the content type nor the file name of an image"),
        ("s3://team/ads/large.png", "has 1001 bytes, must have at most 1000"),
    ],
)
def test_an_image_that_may_not_be_sent_is_explained(client: Any, picture: Any, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        make(requests(client), line(body=question(), images=(picture,)))


def test_images_of_all_lines_are_bounded(client: Any) -> None:
    memory = MemoryBudget(len(PICTURE) * 4 * 2)
    images = Images(client, memory, max_bytes=IMAGE_BYTES)

    async def go() -> None:
        async def read() -> Any:
            return await images.read(["s3://team/ads/a.png"], ["s3://team/ads/"])

        held = [await read(), await read()]
        third = asyncio.create_task(read())
        await asyncio.sleep(60)
        assert not third.done()
        images.let_go(held[0])
        await asyncio.wait_for(third, 10)
        # One that cannot be read holds nothing.
        images.let_go(held[1])
        with pytest.raises(ImageError):
            await images.read(["s3://team/ads/notes"], ["s3://team/ads/"])
        await asyncio.wait_for(read(), 10)

    turn(go())


@pytest.mark.parametrize(
    ("body", "images"),
    [
        ("text", ()),
        (None, ()),
        ({"prompt": "x"}, ("s3://team/ads/a.png",)),
        ({"messages": [{"role": "user", "content": ["x"]}]}, ("s3://team/ads/a.png",)),
    ],
)
def test_a_line_that_checking_cannot_have_written_is_refused(client: Any, body: Any, images: Any) -> None:
    with pytest.raises(InvalidLineError):
        make(requests(client), line(body=body, images=images))
