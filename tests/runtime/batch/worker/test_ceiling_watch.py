"""A worker sends less when the capacity shift gives its model fewer places than shards are running."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from batch.contracts.shard import Usage
from batch.jobs.record_table import Table
from batch.worker.ceiling_watch import CeilingWatch
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.queue import ShardQueue
from inference_contracts.shift_names import CEILING_SECONDS, ceiling_identifier
from inference_decisions.capacity_shift.shift_view import ShiftSettings
from tests.runtime.batch.worker.turned_loop import turn

NOW = 1_800_000_000.0
MODEL = "qwen3-8b"
START = 64
HELD = 4


class FailingClient:
    """A client of AWS; its calls fail while there is an error."""

    def __init__(self, client: Any, failures: list[Exception]) -> None:
        self._client, self._failures = client, failures

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**values: Any) -> Any:
            if self._failures:
                raise self._failures[0]
            return getattr(self._client, name)(**values)

        return call


@dataclass
class Place:
    """A table with ceilings, a queue of which shards are held, and a worker's limit."""

    table: Table
    watch: CeilingWatch
    limit: ConcurrencyLimit
    failures: list[Exception]
    patch: pytest.MonkeyPatch

    def put(self, places: int, *, at: float = NOW) -> None:
        record = {"places": places, "at": int(at)}
        self.table.put({"id": ceiling_identifier(MODEL), "record": record})

    def look(self, *, now: float = NOW) -> int:
        """Let the worker look, and return how many requests it may have in flight then."""
        self.patch.setattr(time, "time", lambda: now)
        asyncio.run(self.watch.look())
        return self.limit.limit


@pytest.fixture
def place(aws: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Place:
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="shards", Attributes={"VisibilityTimeout": "600"})["QueueUrl"]
    for _ in range(HELD + 2):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    for _ in range(HELD):
        assert sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1)["Messages"]
    failures = list[Exception]()
    limit = ConcurrencyLimit(start=START, minimum=4, maximum=512)
    watch = CeilingWatch(
        FailingClient(boto3.client("dynamodb"), failures),
        aws["BATCH_TABLE"],
        MODEL,
        ShardQueue(FailingClient(sqs, failures), url, visibility_seconds=600, poll_seconds=0),
        limit,
    )
    table = Table(boto3.resource("dynamodb").Table(aws["BATCH_TABLE"]))
    return Place(table, watch, limit, failures, monkeypatch)


@pytest.mark.parametrize(("places", "requests"), [(9, START), (4, START), (3, 48), (1, 16), (0, 1)])
def test_a_worker_sends_its_share_of_the_ceiling(place: Place, places: int, requests: int) -> None:
    place.put(places)
    assert place.look() == requests


def test_a_model_without_a_ceiling_sends_one_request_at_a_time(place: Place) -> None:
    assert place.look() == 1


@pytest.mark.parametrize("later", [CEILING_SECONDS + 1, -CEILING_SECONDS - 1])
def test_an_old_ceiling_and_one_of_a_wrong_clock_count_as_none(place: Place, later: int) -> None:
    place.put(HELD)
    assert place.look() == START
    assert place.look(now=NOW + later) == 1


def test_what_was_taken_comes_back(place: Place) -> None:
    seen = []
    for minute, places in enumerate((4, 2, 0, 0, 2, 4)):
        place.put(places, at=NOW + 60 * minute)
        seen.append(place.look(now=NOW + 60 * minute))
    assert seen == [64, 32, 1, 1, 32, 64]


@pytest.mark.parametrize(
    "failure",
    [
        ConnectTimeoutError(endpoint_url="https://dynamodb"),
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem"),
    ],
    ids=["timeout", "denied"],
)
def test_while_aws_does_not_answer_the_last_reading_counts_until_it_is_old(
    place: Place, failure: Exception
) -> None:
    place.put(2)
    assert place.look() == 32
    place.failures.append(failure)
    assert place.look(now=NOW + CEILING_SECONDS - 1) == 32
    assert place.look(now=NOW + CEILING_SECONDS + 1) == 1
    place.failures.clear()
    place.put(4, at=NOW + CEILING_SECONDS + 60)
    assert place.look(now=NOW + CEILING_SECONDS + 60) == START


def test_before_the_first_answer_the_ceiling_is_unknown(place: Place) -> None:
    place.put(HELD)
    place.failures.append(ConnectTimeoutError(endpoint_url="https://dynamodb"))

    async def begin() -> int:
        looking = asyncio.create_task(place.watch.run())
        await asyncio.sleep(0)
        allowed = place.limit.limit
        looking.cancel()
        return allowed

    assert asyncio.run(begin()) == 1


def test_it_looks_at_least_every_half_minute() -> None:
    looks = list[float]()

    class Counting(CeilingWatch):
        async def look(self) -> None:
            looks.append(asyncio.get_running_loop().time())

    async def go() -> None:
        limit = ConcurrencyLimit(start=START, minimum=4, maximum=512)
        queue = ShardQueue(None, "", visibility_seconds=600, poll_seconds=0)
        looking = asyncio.create_task(Counting(None, "records", MODEL, queue, limit).run())
        await asyncio.sleep(600)
        looking.cancel()

    turn(go())
    assert len(looks) >= 20
    assert max(after - before for before, after in itertools.pairwise(looks)) <= 30


def test_batch_has_left_a_deployment_within_the_time_that_the_shift_counts_on(place: Place) -> None:
    """Requests of a second are in flight when the ceiling falls, and the worker looks at its own times."""

    async def go() -> tuple[int, float]:
        now, begin, ended = asyncio.get_running_loop().time, asyncio.get_running_loop().time(), False
        place.patch.setattr(time, "time", lambda: NOW + now() - begin)
        place.put(HELD)

        async def call() -> None:
            while not ended:
                permit = await place.limit.acquire(0)
                await asyncio.sleep(1)
                place.limit.succeeded(permit, Usage())

        watching = asyncio.create_task(place.watch.run())
        async with asyncio.TaskGroup() as group:
            for _ in range(START):
                group.create_task(call())
            await asyncio.sleep(40)
            before = place.limit.in_flight
            place.put(0, at=time.time())
            lowered = now()
            while place.limit.in_flight > 1:
                await asyncio.sleep(0.1)
            took = now() - lowered
            ended = True
        watching.cancel()
        return before, took

    before, took = turn(go())
    assert before == START
    assert 0 < took <= ShiftSettings().admission_seconds


def test_a_narrowed_limit_holds_requests_back_and_does_not_grow() -> None:
    async def go() -> tuple[list[int], int]:
        limit = ConcurrencyLimit(start=START, minimum=4, maximum=512)
        seen = list[int]()
        ended = False

        async def call(order: int) -> None:
            while not ended:
                permit = await limit.acquire(order)
                await asyncio.sleep(1)
                limit.succeeded(permit, Usage())

        async with asyncio.TaskGroup() as group:
            for order in range(START):
                group.create_task(call(order))
            await asyncio.sleep(10)
            limit.narrow(0.25)
            before = limit.limit
            await asyncio.sleep(1.5)
            for _ in range(30):
                seen.append(limit.in_flight)
                await asyncio.sleep(1)
            assert limit.limit == before
            limit.narrow(1)
            await asyncio.sleep(10)
            back = limit.in_flight
            ended = True
            limit.narrow(1)
        return [max(seen), before], back

    (maximum, allowed), back = turn(go())
    assert 1 <= maximum <= allowed
    assert back > maximum
