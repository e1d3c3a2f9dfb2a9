"""A line whose image S3 does not give ends, and no other line waits for it."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ResponseStreamingError

from batch.contracts.request import JobDescription
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.drain import Drain
from batch.worker.image_loader import Images
from batch.worker.line_run import LineRunner, ShardTerms
from batch.worker.metrics import Metrics
from batch.worker.model_endpoint import Answer, ModelEndpoint, Requests
from batch.worker.retry_budget import MemoryBudget, RetryBudget
from batch.worker.rows import RowIdentifier
from tests.runtime.batch.worker.jobs import lines
from tests.runtime.batch.worker.turned_loop import turn

MEMORY = 10_000
BAD = 3


class BrokenBody(io.BytesIO):
    def read(self, *_: Any) -> bytes:
        raise ResponseStreamingError(error="IncompleteRead(5 bytes read, 3 more expected)")


class TeamBucket:
    """S3, which answers for one image as it is told: a code and a status, a broken body, or well."""

    def __init__(self, *answers: tuple[str, int]) -> None:
        self._answers = list(answers)
        self.asked = Counter[str]()
        self.open: list[io.BytesIO] = []

    def get_object(self, **request: str) -> dict[str, Any]:
        key = request["Key"]
        self.asked[key] += 1
        body = io.BytesIO(b"\x89PNG")
        if key == f"ads/{BAD}.png":
            code, status = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            if code == "broken":
                body = BrokenBody()
            elif code:
                error = {"Code": code, "Message": "said S3"}
                raise ClientError(
                    {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject"
                )
        self.open.append(body)
        return {"Body": body, "ContentLength": 4, "ContentType": "image/png"}


class Endpoint:
    async def ask(self, *_: object, **__: object) -> Answer:
        await asyncio.sleep(1)
        return Answer(200, "", b"{}")


def run(bucket: TeamBucket, *, count: int = 6, seconds: float = 3600.0) -> dict[int, dict[str, Any]]:
    """Run lines with one image each, and return their rows."""

    async def go() -> dict[int, dict[str, Any]]:
        loop = asyncio.get_running_loop()
        memory = MemoryBudget(MEMORY)
        description = JobDescription(
            "job", "ads", "qwen", "/v1/chat/completions", time.time(), data_prefixes=("s3://team/ads/",)
        )
        limit = ConcurrencyLimit(start=2, minimum=1, maximum=2)
        runner = LineRunner(
            cast("ModelEndpoint", Endpoint()), limit, RetryBudget(0.1), Metrics("chat", "qwen"), 5, 100
        )
        terms = ShardTerms(
            identifier=RowIdentifier("job", "0"),
            requests=Requests(description, Images(bucket, memory, max_bytes=1000)),
            path="/v1/chat/completions",
            deadline=loop.time() + seconds,
            order=0,
            drain=Drain(),
        )

        async def one(number: int) -> dict[str, Any]:
            line = replace(lines(number + 1)[number], images=(f"s3://team/ads/{number}.png",))
            permit = limit.acquire_now() or await limit.acquire(0)
            row: dict[str, Any] = json.loads((await runner.run(line, terms, permit)).row)
            return row

        rows = await asyncio.gather(*(one(number) for number in range(count)))
        assert limit.in_flight == 0
        await asyncio.wait_for(memory.take(MEMORY), 1)
        assert all(each.closed for each in bucket.open), "a connection to S3 stays open"
        return dict(enumerate(rows))

    found: dict[int, dict[str, Any]] = turn(go())
    return found


def error_of(rows: dict[int, dict[str, Any]]) -> dict[str, str]:
    """Return the error of the bad line. All others have their answers."""
    assert all(row["error"] is None for number, row in rows.items() if number != BAD)
    error: dict[str, str] = rows[BAD]["error"]
    return error


@pytest.mark.parametrize(
    "code", ["NoSuchKey", "InvalidObjectState", "KeyTooLongError", "KMS.DisabledException"]
)
def test_a_fault_of_an_image_ends_its_line(code: str) -> None:
    """Red if the error ends the work on the shard, which then comes back for ever."""
    bucket = TeamBucket((code, 400))
    error = error_of(run(bucket))
    assert error["code"] == "image_error"
    assert f"s3://team/ads/{BAD}.png" in error["message"]
    assert code in error["message"]
    assert bucket.asked[f"ads/{BAD}.png"] == 1


@pytest.mark.parametrize(
    "answer", [("AccessDenied", 403), ("SlowDown", 503), ("ExpiredToken", 400), ("broken", 200)]
)
def test_what_passes_is_tried_again(answer: tuple[str, int]) -> None:
    """Red if a policy that takes effect late, or a moment of S3, fails the line for good."""
    bucket = TeamBucket(answer, answer, ("", 200))
    assert run(bucket)[BAD]["error"] is None
    assert bucket.asked[f"ads/{BAD}.png"] == 3


def test_a_denial_that_stays_ends_its_line() -> None:
    """Red if a line waits for a permission until its deadline."""
    error = error_of(run(TeamBucket(("AccessDenied", 403))))
    assert error["code"] == "image_error"
    assert "kms:Decrypt" in error["message"]
    assert "an object that does not exist" in error["message"]


def test_an_outage_of_s3_fails_no_line_until_the_deadline() -> None:
    """Red if lines fail for good because S3 answers nobody."""
    bucket = TeamBucket(("ServiceUnavailable", 503))
    row = run(bucket, count=BAD + 1, seconds=900)[BAD]
    assert row["error"]["code"] == "batch_expired"
    assert 12 < bucket.asked[f"ads/{BAD}.png"] < 40
