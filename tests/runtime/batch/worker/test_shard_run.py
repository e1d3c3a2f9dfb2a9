"""A shard that is let go at any moment leaves nothing of the process's behind."""

from __future__ import annotations

import asyncio
import io
import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardMessage
from batch.worker.answer_images import AnswerImages
from batch.worker.bucket_client import BucketClient, OpenObject, StoredObject
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.image_loader import Images
from batch.worker.line_run import LineRunner
from batch.worker.metrics import Metrics
from batch.worker.model_endpoint import Answer, EndpointFault, Failure, ModelEndpoint
from batch.worker.retry_budget import MemoryBudget, RetryBudget
from batch.worker.settings import read_settings
from batch.worker.shard_run import ShardRun, Shared
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch.worker.jobs import lines
from tests.runtime.batch.worker.test_settings import RIGHT
from tests.runtime.batch.worker.turned_loop import turn

LINES = 40
MEMORY = 6_000


@dataclass
class HeldObjects:
    """A bucket in memory, whose calls take a moment."""

    objects: dict[str, bytes] = field(default_factory=dict)

    async def read(self, key: str) -> StoredObject | None:
        await asyncio.sleep(0)
        if key not in self.objects:
            return None
        return StoredObject(self.objects[key], {"attempts": "0"}, time.time())

    async def open(self, key: str, first: int = 0) -> OpenObject:
        await asyncio.sleep(0)
        content = self.objects[key][first:]
        return OpenObject(io.BytesIO(content), len(content), "")

    async def keys(self, prefix: str) -> list[str]:
        await asyncio.sleep(0)
        return sorted(key for key in self.objects if key.startswith(prefix))

    async def create(self, key: str, body: bytes, _: object) -> bool:
        await asyncio.sleep(0)
        return self.objects.setdefault(key, body) is body


class MoodyEndpoint:
    """Answers, refuses and breaks in turn."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, *_: object, **__: object) -> Answer | Failure:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        if number % 7 == 3:
            return Failure(EndpointFault.REFUSED, "status 429", 0.0)
        if number % 7 == 5:
            return Failure(EndpointFault.BROKEN, "status 500")
        return Answer(200, "", b"{}")


def make_run() -> tuple[ShardRun, HeldObjects]:
    keys, bucket = JobKeys("job"), HeldObjects()
    description = JobDescription("job", "ads", "qwen", "/v1/chat/completions", time.time() + 1000)
    bucket.objects[keys.description] = description.to_json().encode()
    text = "".join(line.to_json() + "\n" for line in lines(LINES))
    bucket.objects[keys.shard("0").lines] = text.encode()
    runner = LineRunner(
        cast("ModelEndpoint", MoodyEndpoint()),
        ConcurrencyLimit(start=8, minimum=2, maximum=8),
        RetryBudget(0.1),
        Metrics("chat", "qwen"),
        attempts=5,
        request_seconds=100,
    )
    memory = MemoryBudget(MEMORY)
    shared = Shared(
        read_settings(RIGHT),
        cast("BucketClient", bucket),
        runner,
        memory,
        cast("Images", None),
        cast("AnswerImages", None),
    )
    return ShardRun(ShardMessage("job", "0", "token"), shared, 0, lambda: None), bucket


@pytest.mark.parametrize("way", ["cancel", "drain"])
def test_a_shard_that_is_let_go_holds_nothing(way: str) -> None:
    async def let_go(after: int) -> None:
        run, bucket = make_run()
        task: asyncio.Task[Any] = asyncio.create_task(run.run())
        for _ in range(after):
            await asyncio.sleep(0)
            if task.done():
                break
        if way == "cancel":
            task.cancel()
        else:
            run.drain()
        await asyncio.wait([task], timeout=20)
        assert task.done()
        assert run.shared.runner.limit.in_flight == 0
        # All of it can be had.
        await asyncio.wait_for(run.shared.memory.take(MEMORY), 1)
        chunks = await bucket.keys("jobs/job/chunks/")
        committed = [row for key in chunks for row in bucket.objects[key].splitlines()]
        assert len(committed) == run.shared.runner.metrics.rows == len(set(committed))

    async def go() -> None:
        for after in [*range(60), *range(60, 400, 7)]:
            await let_go(after)

    turn(go())
