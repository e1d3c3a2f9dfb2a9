"""The limit, on an event loop whose clock is turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch.contracts.shard import Usage
from batch.worker.concurrency_limit import ConcurrencyLimit, Permit
from tests.runtime.batch.worker.turned_loop import turn


class Endpoint:
    """Takes so many at a time, each for a second, and refuses the others."""

    def __init__(self, limit: ConcurrencyLimit, capacity: int) -> None:
        self.limit = limit
        self.capacity = capacity
        self.busy = self.answered = self.refused = 0

    async def serve(self, seconds: float, *, callers: int = 800) -> tuple[int, int]:
        """Return how many were answered and refused meanwhile."""
        before = self.answered, self.refused
        end = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for order in range(callers):
                group.create_task(self._call(order, end))
        return self.answered - before[0], self.refused - before[1]

    async def _call(self, order: int, end: float) -> None:
        while asyncio.get_running_loop().time() < end:
            permit = await self.limit.acquire(order)
            if self.busy >= self.capacity:
                await asyncio.sleep(0.01)
                self.refused += 1
                self.limit.refused(permit)
                continue
            self.busy += 1
            await asyncio.sleep(1)
            self.busy -= 1
            self.answered += 1
            self.limit.succeeded(permit, Usage())


@given(
    st.lists(st.sampled_from(["acquire", "succeed", "refuse", "refuse later", "end", "wait"]), max_size=300),
    st.integers(1, 8),
    st.integers(8, 40),
    st.integers(40, 100),
)
@settings(max_examples=200, deadline=None)
def test_what_is_in_flight_never_exceeds_the_limit(
    acts: list[str], minimum: int, start: int, maximum: int
) -> None:
    async def go() -> None:
        limit = ConcurrencyLimit(start=start, minimum=minimum, maximum=maximum)
        held: list[Permit] = []
        waiting: list[asyncio.Task[Permit]] = []
        for act in acts:
            if act == "acquire":
                waiting.append(asyncio.create_task(limit.acquire(len(waiting))))
            elif act == "wait":
                await asyncio.sleep(30)
            elif held:
                permit = held.pop(0)
                if act == "succeed":
                    limit.succeeded(permit, Usage())
                elif act == "end":
                    limit.ended()
                else:
                    limit.refused(permit, 5.0 if act == "refuse later" else None)
            before = limit.in_flight
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            # What is given after a cut is within the limit; what was given before it may exceed it.
            assert limit.in_flight <= max(limit.limit, before)
            held += [task.result() for task in waiting if task.done()]
            waiting = [task for task in waiting if not task.done()]
            assert limit.in_flight == len(held)
            assert minimum <= limit.limit <= maximum
        # Nobody is forgotten.
        while held or waiting:
            for permit in held:
                limit.succeeded(permit, Usage())
            await asyncio.sleep(100)
            held = [task.result() for task in waiting if task.done()]
            waiting = [task for task in waiting if not task.done()]
        assert limit.in_flight == 0

    turn(go())


@pytest.mark.parametrize("capacity", [10, 100, 500])
def test_it_finds_the_capacity_and_stays_near_it(capacity: int) -> None:
    async def go() -> tuple[int, int]:
        endpoint = Endpoint(ConcurrencyLimit(start=32, minimum=4, maximum=512), capacity)
        await endpoint.serve(60)
        return await endpoint.serve(200)

    answered, refused = turn(go())
    assert answered >= 0.85 * 200 * capacity
    assert refused <= 0.1 * answered


def test_it_is_back_soon_after_a_dip() -> None:
    async def go() -> tuple[int, int]:
        limit = ConcurrencyLimit(start=32, minimum=4, maximum=512)
        endpoint = Endpoint(limit, 512)
        await endpoint.serve(30)
        assert limit.limit >= 500
        endpoint.capacity = 0
        await endpoint.serve(20)
        assert limit.limit == 4
        endpoint.capacity = 512
        # The longest pause, and then rounds of a second: ten are enough for any size.
        await endpoint.serve(25)
        return await endpoint.serve(10)

    answered, _ = turn(go())
    assert answered >= 0.95 * 512 * 9


def test_it_finds_capacity_that_was_added() -> None:
    async def go() -> int:
        limit = ConcurrencyLimit(start=32, minimum=4, maximum=512)
        endpoint = Endpoint(limit, 50)
        await endpoint.serve(60)
        endpoint.capacity = 10_000
        await endpoint.serve(15)
        return limit.limit

    assert turn(go()) == 512


def test_a_limit_that_is_not_used_does_not_grow() -> None:
    async def go() -> int:
        limit = ConcurrencyLimit(start=32, minimum=4, maximum=512)
        await Endpoint(limit, 1000).serve(60, callers=5)
        return limit.limit

    assert turn(go()) == 32


def test_many_refusals_of_one_round_are_one_cut() -> None:
    async def go() -> int:
        limit = ConcurrencyLimit(start=100, minimum=4, maximum=512)
        for permit in [await limit.acquire(0) for _ in range(100)]:
            limit.refused(permit, 0.0)
        return limit.limit

    assert turn(go()) == 75


def test_nothing_is_given_before_the_time_that_the_endpoint_named() -> None:
    async def go() -> float:
        limit, begin = ConcurrencyLimit(start=8, minimum=4, maximum=8), asyncio.get_running_loop().time()
        limit.refused(await limit.acquire(0), 30.0)
        await limit.acquire(0)
        return asyncio.get_running_loop().time() - begin

    assert turn(go()) == pytest.approx(30.0)


def test_the_oldest_shard_goes_first() -> None:
    async def go() -> list[int]:
        limit, given = ConcurrencyLimit(start=1, minimum=1, maximum=1), list[int]()

        async def take(order: int) -> None:
            permit = await limit.acquire(order)
            given.append(order)
            limit.succeeded(permit, Usage())

        first = await limit.acquire(0)
        tasks = [asyncio.create_task(take(order)) for order in (3, 1, 2, 1)]
        await asyncio.sleep(0)
        limit.succeeded(first, Usage())
        await asyncio.gather(*tasks)
        return given

    assert turn(go()) == [1, 1, 2, 3]


@pytest.mark.parametrize("is_given", [False, True])
def test_who_stops_waiting_leaves_its_place_to_others(*, is_given: bool) -> None:
    async def go() -> None:
        limit = ConcurrencyLimit(start=1, minimum=1, maximum=1)
        first = await limit.acquire(0)
        waiting = asyncio.create_task(limit.acquire(0))
        await asyncio.sleep(0)
        end: Callable[[], None] = lambda: limit.succeeded(first, Usage())  # noqa: E731
        if is_given:
            end()
        waiting.cancel()
        await asyncio.sleep(0)
        if not is_given:
            end()
        await asyncio.wait_for(limit.acquire(0), 1)

    turn(go())
