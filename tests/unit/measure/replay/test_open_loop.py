"""Requests leave when they are due, on a clock that only the test moves."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast

import pytest

from inference_blueprints.measure.completions.completion_client import (
    REFUSED,
    CompletionClient,
    RequestOutcome,
    TokenUsage,
)
from inference_blueprints.measure.replay.open_loop import (
    NOT_SENT,
    UNREACHABLE_IN_A_ROW,
    OpenLoop,
    Pacing,
    ReplayProgress,
)
from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import PrefixBlock, ReplayError, ScaledRequest

START = 1000.0
Sleep = Callable[[float], Coroutine[Any, Any, None]]


class VirtualTime:
    """A clock that jumps to the next sleeper once everyone sleeps."""

    def __init__(self) -> None:
        self.now = START
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, woken))
        await woken

    async def run(self, work: Coroutine[Any, Any, list[RequestOutcome]]) -> list[RequestOutcome]:
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(20):  # let everyone come to their sleep
                await asyncio.sleep(0)
            if self._sleepers and not task.done():
                self.now, _, woken = heapq.heappop(self._sleepers)
                if not woken.done():
                    woken.set_result(None)
        return await task


class Answering:
    """A client whose answers take a given time, and fail with a given reason or each with its own."""

    def __init__(self, time: VirtualTime, seconds: float, failure: str | list[str | None] | None) -> None:
        self._time = time
        self._seconds = seconds
        self._failures = iter(failure) if isinstance(failure, list) else itertools.repeat(failure)
        self.cancelled = 0

    async def complete(self, _prompt: str, output_tokens: int, due_seconds: float) -> RequestOutcome:
        sent = self._time.clock()
        failure = next(self._failures)
        try:
            await self._time.sleep(self._seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        now = self._time.clock()
        return RequestOutcome(
            due_seconds, sent, now, now, now, TokenUsage(1, output_tokens, 0), failure, "port 1"
        )


def requests(*arrivals: float) -> list[ScaledRequest]:
    return [ScaledRequest(arrival, 1, 1, (PrefixBlock(0, 1),)) for arrival in arrivals]


def send(
    arrivals: Iterable[float],
    *,
    answer_seconds: float = 0.1,
    failure: str | list[str | None] | None = None,
    limit: int = 10,
    on_progress: Callable[[ReplayProgress], None] | None = None,
    sleep: Callable[[VirtualTime], Sleep] | None = None,
) -> tuple[Answering, Callable[[], list[RequestOutcome]]]:
    time = VirtualTime()
    client = Answering(time, answer_seconds, failure)
    loop = OpenLoop(
        cast("CompletionClient", client),
        PromptWriter(lambda tokens, _seed: "word" * tokens, seed=0),
        in_flight_limit=limit,
        pacing=Pacing(clock=time.clock, sleep=sleep(time) if sleep else time.sleep),
        on_progress=on_progress,
    )
    return client, lambda: asyncio.run(time.run(loop.send(requests(*arrivals))))


def test_requests_are_sent_when_due_although_earlier_ones_are_not_answered() -> None:
    arrivals = (0.0, 1.0, 1.5, 7.25)
    _, run = send(arrivals, answer_seconds=100.0)
    outcomes = run()
    assert [outcome.sent_seconds for outcome in outcomes] == list(arrivals)
    assert [outcome.due_seconds for outcome in outcomes] == list(arrivals)
    assert [outcome.ended_seconds for outcome in outcomes] == [arrival + 100.0 for arrival in arrivals]


def test_a_request_that_leaves_late_keeps_its_due_time() -> None:
    def oversleeping(time: VirtualTime) -> Sleep:
        async def sleep(seconds: float) -> None:
            await time.sleep(seconds + 0.5)

        return sleep

    _, run = send((0.0, 2.0), sleep=oversleeping)
    outcomes = run()
    assert [outcome.due_seconds for outcome in outcomes] == [0.0, 2.0]
    assert [outcome.sent_seconds for outcome in outcomes] == [0.5, 2.5]


def test_a_full_house_is_a_failure_with_its_own_reason() -> None:
    _, run = send((0.0, 1.0, 2.0, 3.0), answer_seconds=2.5, limit=2)
    assert [outcome.failure for outcome in run()] == [None, None, NOT_SENT, None]


def test_an_endpoint_that_is_gone_ends_the_replay_and_the_requests_in_flight() -> None:
    arrivals = [float(number) for number in range(100)]
    client, run = send(arrivals, answer_seconds=10.5, failure=REFUSED, limit=100)
    message = rf"after {UNREACHABLE_IN_A_ROW} of 100 requests: .*{REFUSED}: port 1"
    with pytest.raises(ReplayError, match=message):
        run()
    assert client.cancelled > 0


def test_failures_of_single_requests_do_not_end_the_replay() -> None:
    _, run = send([float(number) for number in range(3 * UNREACHABLE_IN_A_ROW)], failure="HTTP 500")
    assert len(run()) == 3 * UNREACHABLE_IN_A_ROW


def test_an_answer_between_shows_that_the_endpoint_is_there() -> None:
    nearly = [REFUSED] * (UNREACHABLE_IN_A_ROW - 1)
    failures = [*nearly, None, *nearly, "HTTP 500", *nearly]
    _, run = send([float(number) for number in range(len(failures))], failure=failures)
    assert [outcome.failure for outcome in run()] == failures


def test_progress_counts_what_is_done_and_what_is_under_way() -> None:
    seen: list[ReplayProgress] = []
    _, run = send((0.0, 1.0), answer_seconds=1.5, on_progress=seen.append)
    run()
    assert seen == [
        ReplayProgress(0, 2, 1),
        ReplayProgress(0, 2, 2),
        ReplayProgress(1, 2, 1),
        ReplayProgress(2, 2, 0),
    ]
