"""The limit at an endpoint that others ask: answers take longer the more are in flight, none is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from statistics import mean

import pytest

from batch.contracts.shard import Usage
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.inflation import Inflation
from tests.runtime.batch.worker.turned_loop import turn

MAXIMUM = 1.2


class SlowingEndpoint:
    """Takes a second for an answer, and longer in proportion to what is in flight."""

    def __init__(self, doubled_at: float) -> None:
        self.doubled_at = doubled_at
        self.busy = 0
        self.answered = Counter[tuple[int, int]]()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, worker: int, limit: ConcurrencyLimit) -> None:
        self._tasks += [asyncio.create_task(self._call(worker, limit)) for _ in range(520)]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _call(self, worker: int, limit: ConcurrencyLimit) -> None:
        now = asyncio.get_running_loop().time
        while True:
            permit = await limit.acquire(0)
            self.busy += 1
            await asyncio.sleep(1 + self.busy / self.doubled_at)
            self.busy -= 1
            self.answered[worker, int(now() // 10)] += 1
            limit.succeeded(permit, Usage(100, 0, 50))


def run(endpoint: SlowingEndpoint, workers: int, seconds: float, start: int = 64) -> list[ConcurrencyLimit]:
    """Let workers run, and return their limits."""

    async def go() -> list[ConcurrencyLimit]:
        now = asyncio.get_running_loop().time
        limits = [
            ConcurrencyLimit(start=start, minimum=4, maximum=512, inflation=Inflation(MAXIMUM, clock=now))
            for _ in range(workers)
        ]
        for number, limit in enumerate(limits):
            endpoint.start(number, limit)
            # No two processes do the same at the same time.
            await asyncio.sleep(7)
        await asyncio.sleep(seconds)
        endpoint.stop()
        return limits

    limits: list[ConcurrencyLimit] = turn(go())
    return limits


def tens(endpoint: SlowingEndpoint, worker: int, begin: int, end: int) -> list[int]:
    """Return the answers of each ten seconds."""
    first = min(ten for _, ten in endpoint.answered)
    return [endpoint.answered[worker, first + ten] for ten in range(begin, end)]


@pytest.mark.parametrize(
    ("start", "doubled_at"),
    [
        (8, 100.0),
        *(
            pytest.param(start, doubled_at, marks=pytest.mark.thorough)
            for start, doubled_at in ((64, 300.0), (64, 1000.0), (512, 1500.0))
        ),
    ],
)
def test_it_finds_how_much_may_be_in_flight_and_stays_there(start: int, doubled_at: float) -> None:
    endpoint = SlowingEndpoint(doubled_at)
    run(endpoint, 1, 280, start)
    answered = tens(endpoint, 0, 12, 28)
    assert min(answered) >= 0.9 * max(answered), "it does not swing"
    in_flight = mean(answered) / 10 / (1 - mean(answered) / 10 / doubled_at)
    # Answers take as much longer as they may, than with next to nothing in flight.
    assert 0.8 * (MAXIMUM - 1) * doubled_at <= in_flight <= 1.1 * (MAXIMUM - 1) * doubled_at + MAXIMUM * 4


def test_who_has_the_endpoint_alone_uses_all_of_it() -> None:
    endpoint = SlowingEndpoint(1e6)
    (limit,) = run(endpoint, 1, 100)
    assert limit.limit == 512


def test_it_is_back_soon_after_a_dip() -> None:
    endpoint = SlowingEndpoint(1e6)

    async def go() -> int:
        now = asyncio.get_running_loop().time
        limit = ConcurrencyLimit(start=64, minimum=4, maximum=512, inflation=Inflation(MAXIMUM, clock=now))
        endpoint.start(0, limit)
        await asyncio.sleep(60)
        for _ in range(30):
            limit.refused(await limit.acquire(-1), 0.1)
        assert limit.limit == 4
        await asyncio.sleep(60)
        endpoint.stop()
        return limit.limit

    assert turn(go()) >= 0.9 * 512


@pytest.mark.thorough
def test_two_workers_share() -> None:
    endpoint = SlowingEndpoint(200.0)
    run(endpoint, 2, 3000)
    shares = [sum(tens(endpoint, worker, 200, 300)) for worker in range(2)]
    assert 0.67 <= shares[0] / shares[1] <= 1.5
    both = sum(shares) / 1000
    assert both / (1 - both / 200) <= 1.2 * (MAXIMUM - 1) * 200 + MAXIMUM * 8
