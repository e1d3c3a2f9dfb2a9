"""A message is let go before the queue takes it away, and whoever has it next goes on from there."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any, cast

from batch.worker.model_endpoint import Answer, ModelEndpoint
from batch.worker.queue import QueueMessage, ShardQueue
from batch.worker.shard_holder import ShardHolder, ShardReports, ShardTask
from batch.worker.shard_run import ShardRun
from tests.runtime.batch.worker.test_turns import LINES, Stage
from tests.runtime.batch.worker.turned_loop import turn

FIRST = 5


@dataclass
class Told:
    """The queue and the task, which note what they are told."""

    words: list[str] = field(default_factory=list)

    async def give_back(self, _: object, after_seconds: int) -> None:
        self.words.append(f"given back after {after_seconds}")

    async def delete(self, _: object) -> None:
        self.words.append("deleted")

    async def heartbeat(self) -> None:
        pass

    async def succeed(self, _: object) -> None:
        self.words.append("succeeded")


@dataclass
class HeldEndpoint:
    """Answers some lines, and the others in flight when the run lets go."""

    run: ShardRun
    asked: int = 0

    async def ask(self, *_: object, **__: object) -> Answer:
        self.asked += 1
        while self.asked > FIRST and not self.run._drain._has_begun:
            await asyncio.sleep(0.001)
        return Answer(200, "", b"{}")


async def hold(stage: Stage, endpoint: Any, run: ShardRun, told: Told, *, seconds: float) -> None:
    run.shared.runner.endpoint = cast("ModelEndpoint", endpoint)
    holder = ShardHolder(
        QueueMessage("", "receipt", 1),
        cast("ShardQueue", told),
        cast("ShardTask", told),
        run,
        ShardReports(None, None, run.message),
        heartbeat_seconds=1000,
        hold_seconds=seconds,
    )
    await holder.hold()


def test_a_message_is_given_back_in_time_and_its_shard_goes_on() -> None:
    async def go() -> None:
        stage, told = Stage(random.Random(0)), Told()  # noqa: S311 - no secret
        stage.begin(1, seconds=1000)
        first = stage.worker()
        endpoint = HeldEndpoint(first)
        # The first lines take no time by this clock, and the others wait until the run lets go.
        await hold(stage, endpoint, first, told, seconds=0.5)
        assert told.words == ["given back after 0"]
        asked = endpoint.asked
        assert FIRST < asked < LINES
        # What was in flight was answered, and is kept.
        assert first.progress is not None
        assert first.progress.completed == asked
        await hold(stage, endpoint, stage.worker(), told, seconds=1000)
        assert told.words[1:] == ["succeeded", "deleted"]
        assert endpoint.asked == LINES
        _, output, error = stage.results()
        assert (set(output), error.total()) == (set(range(LINES)), 0)

    turn(go())
