"""What the deadline overtook is done again: once, whoever is late, killed or at it at the same time."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, cast

import orjson
import pytest

from batch.completion.shard_results import ShardResults, Unrun, read_results
from batch.contracts.progress_items import ShardProgress
from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardMessage
from batch.objects import Objects
from batch.worker.answer_images import AnswerImages
from batch.worker.bucket_client import BucketClient
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
from tests.runtime.batch.worker.test_shard_run import HeldObjects
from tests.runtime.batch.worker.turned_loop import turn

LINES = 12
REFUSED = 5
KEYS = JobKeys("job").shard("0")


class WholeObjects(HeldObjects):
    """A bucket in memory that is written too, as workers see it."""

    async def write(self, key: str, body: bytes) -> None:
        await asyncio.sleep(0)
        self.objects[key] = body

    def written_in_parts(self, key: str) -> Part:
        return Part(self, key)


@dataclass
class Part:
    """An object that is there when it is whole."""

    bucket: WholeObjects
    key: str
    content: bytearray = field(default_factory=bytearray)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.bucket.write(self.key, bytes(self.content))

    async def add(self, content: bytes) -> None:
        self.content += content


@dataclass
class SeenObjects:
    """The same, as functions see it."""

    objects: dict[str, bytes]

    def sizes(self, prefix: str) -> dict[str, int]:
        return {key: len(self.objects[key]) for key in sorted(self.objects) if key.startswith(prefix)}

    def read(self, key: str) -> bytes:
        return self.objects[key]

    def pieces(self, key: str) -> Iterable[bytes]:
        return [self.objects[key]]

    def write(self, key: str, content: bytes, **_: str) -> None:
        self.objects[key] = content

    def write_stream(self, key: str, pieces: Iterable[bytes]) -> None:
        self.objects[key] = b"".join(pieces)


class Answers:
    """An endpoint that answers every line but one, after a moment of any length."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def ask(self, _: str, request: Any, **__: object) -> Answer | Failure:
        for _turn in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
        if self._chance.random() < 0.1:
            return Failure(EndpointFault.REFUSED, "status 429", 0.0)
        content = orjson.loads(request.body)["messages"][0]["content"]
        return Answer(400 if content == str(REFUSED) else 200, "", b'{"usage":{"prompt_tokens":1}}')


@dataclass
class Stage:
    """A shard, and workers that come and go."""

    chance: random.Random
    bucket: WholeObjects = field(default_factory=WholeObjects)

    def __post_init__(self) -> None:
        text = "".join(line.to_json() + "\n" for line in lines(LINES))
        self.bucket.objects[KEYS.lines] = text.encode()

    def begin(self, attempt: int, *, seconds: float) -> None:
        """Begin an attempt that has so much time."""
        deadline = time.time() + seconds
        description = JobDescription("job", "ads", "qwen", "/v1/chat/completions", deadline, attempt=attempt)
        self.bucket.objects[JobKeys("job").description] = description.to_json().encode()

    def worker(self) -> ShardRun:
        runner = LineRunner(
            cast("ModelEndpoint", Answers(self.chance)),
            ConcurrencyLimit(start=4, minimum=2, maximum=4),
            RetryBudget(0.1),
            Metrics("chat", "qwen"),
            attempts=5,
            request_seconds=100,
        )
        settings = read_settings({**RIGHT, "BATCH_FLUSH_MILLISECONDS": "1"})
        shared = Shared(
            settings,
            cast("BucketClient", self.bucket),
            runner,
            MemoryBudget(2**20),
            cast("Images", None),
            cast("AnswerImages", None),
        )
        return ShardRun(ShardMessage("job", "0", "token"), shared, 0, lambda: None)

    def results(self) -> tuple[ShardResults, Counter[int], Counter[int]]:
        """Return what a job's end would find now: lines with an answer, and those that failed."""
        objects = SeenObjects(dict(self.bucket.objects))
        found = read_results(
            KEYS,
            objects.sizes("jobs/job/parts/"),
            cast("Objects", objects),
            lines=LINES,
            unrun=Unrun("not_run", "The job failed."),
            rest={},
            has_time=lambda: True,
        )
        assert found is not None
        output, error = (
            Counter(
                int(orjson.loads(row)["id"].rpartition("_")[2])
                for key, size in sizes.items()
                if size
                for row in objects.read(key).splitlines()
            )
            for sizes in (found.output, found.error)
        )
        assert (found.report.completed, found.report.failed) == (output.total(), error.total())
        assert set((output + error).values()) <= {1}, "a line is in the results twice"
        return found, output, error


async def for_a_while(task: asyncio.Task[Any], steps: int) -> None:
    for _ in range(steps):
        if task.done():
            return
        await asyncio.sleep(0)


async def kill(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("seed", range(60))
def test_every_line_ends_once_however_attempts_meet(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret

    async def go() -> None:
        stage = Stage(chance)
        late: list[asyncio.Task[Any]] = []
        seen: list[ShardProgress] = []
        attempts = chance.randint(2, 4)
        for attempt in range(1, attempts):
            # Workers begin in time, and the deadline comes while they work or before.
            stage.begin(attempt, seconds=1000)
            workers = [stage.worker() for _ in range(chance.randint(1, 2))]
            tasks = [asyncio.create_task(worker.run()) for worker in workers]
            for task in tasks:
                await for_a_while(task, chance.randrange(60))
            stage.begin(attempt, seconds=-1)
            workers.append(stage.worker())
            tasks.append(asyncio.create_task(workers[-1].run()))
            await for_a_while(tasks[-1], chance.choice([5, 30, 1000]))
            for task in tasks:
                # Some are killed; some hang, and wake in a later attempt.
                if chance.random() < 0.6:
                    await kill(task)
                else:
                    late.append(task)
            stage.results()
        stage.begin(attempts, seconds=1000)
        last = stage.worker()
        done = asyncio.create_task(last.run())
        while not done.done():
            await asyncio.sleep(0)
            stage_progress = last.progress
            if stage_progress is not None:
                seen.append(stage_progress)
        for task in late:
            await task
        found, output, error = stage.results()
        assert found.is_done
        assert set(output) == set(range(LINES)) - {REFUSED}
        assert set(error) == {REFUSED}
        ended = done.result()
        assert ended is not None
        assert (ended.completed, ended.failed, ended.expired) == (LINES - 1, 1, 0)
        assert last.progress == ShardProgress(attempts, LINES - 1, 1, 0, ended.usage)
        steps = [(each.completed, each.failed) for each in seen]
        assert all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(steps))

    turn(go())


def test_a_deadline_that_has_passed_ends_every_line_in_one_turn() -> None:
    async def go() -> None:
        stage = Stage(random.Random(0))  # noqa: S311 - no secret
        stage.begin(1, seconds=-1)
        done = await stage.worker().run()
        assert done is not None
        assert (done.completed, done.failed, done.expired) == (0, LINES, LINES)
        found, output, error = stage.results()
        assert not found.is_done
        assert (output.total(), error.total()) == (0, LINES)
        assert KEYS.next_turn.done not in stage.bucket.objects

    turn(go())
