"""Requests that began together do not stay a crowd."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from batch.contracts.shard import Usage
from batch.worker.concurrency_limit import ConcurrencyLimit
from tests.runtime.batch.worker.turned_loop import turn

ANSWER_SECONDS = 2.0


def beginnings(in_flight: int, seconds: float) -> list[float]:
    """Return when requests began at an endpoint whose answers all take as long."""

    async def go() -> list[float]:
        limit, begun = ConcurrencyLimit(start=in_flight, minimum=1, maximum=in_flight), list[float]()
        now = asyncio.get_running_loop().time
        start = now()

        async def call() -> None:
            while now() < start + seconds:
                permit = await limit.acquire(0)
                begun.append(now() - start)
                await asyncio.sleep(ANSWER_SECONDS)
                limit.succeeded(permit, Usage())

        await asyncio.gather(*(call() for _ in range(in_flight)))
        return begun

    found: list[float] = turn(go())
    return found


@pytest.mark.parametrize("in_flight", [10, 100, 512])
def test_a_crowd_spreads_over_the_time_of_an_answer(in_flight: int) -> None:
    begun = beginnings(in_flight, 40)
    assert begun[:in_flight] == [0.0] * in_flight, "nothing is known of the first"
    last = sorted(begun)[-8 * in_flight :]
    tenth = ANSWER_SECONDS / 10
    crowd = max(sum(begin <= other < begin + tenth for other in last) for begin in last)
    # A tenth of the time has a tenth of the requests, and what may begin together.
    assert crowd <= 0.2 * in_flight + 2


def test_no_place_in_flight_is_left_empty_for_it() -> None:
    begun = beginnings(100, 200)
    rates = [
        len(list(group)) / 10 for _, group in itertools.groupby(sorted(begun), lambda begin: int(begin // 10))
    ]
    assert min(rates[1:-1]) >= 0.98 * 100 / ANSWER_SECONDS
