"""What is sent again, and what is held at the same time."""

from __future__ import annotations

import asyncio

import pytest

from batch.worker.retry_budget import MemoryBudget, RetryBudget
from tests.runtime.batch.worker.turned_loop import turn

TOKENS_AT_FIRST = 100
TOKENS_A_SECOND = 10


async def _taken(budget: RetryBudget, seconds: float) -> int:
    """Take as many tokens as there are within a time, and return how many."""
    end, taken = asyncio.get_running_loop().time() + seconds, 0
    while True:
        try:
            async with asyncio.timeout_at(end):
                await budget.take()
        except TimeoutError:
            return taken
        taken += 1


def test_retries_in_vain_are_few() -> None:
    async def go() -> tuple[int, int]:
        budget = RetryBudget(0.1)
        first = await _taken(budget, 0.001)
        for _ in range(500):
            budget.succeeded(again=False)
        return first, await _taken(budget, 0.001)

    assert turn(go()) == (TOKENS_AT_FIRST, 50)


def test_a_retry_that_succeeds_costs_nothing() -> None:
    async def go() -> int:
        budget = RetryBudget(0.1)
        await _taken(budget, 0.001)
        for _ in range(40):
            budget.succeeded(again=True)
        return await _taken(budget, 0.001)

    assert turn(go()) == 44


def test_some_come_with_time_so_nothing_waits_for_ever() -> None:
    async def go() -> int:
        budget = RetryBudget(0.1)
        await _taken(budget, 0.001)
        return await _taken(budget, 60)

    assert turn(go()) == pytest.approx(60 * TOKENS_A_SECOND, abs=2)


def test_who_came_first_is_served_first() -> None:
    async def go() -> list[int]:
        budget, served = RetryBudget(0.1), list[int]()
        await _taken(budget, 0.001)

        async def take(number: int) -> None:
            await budget.take()
            served.append(number)

        tasks = [asyncio.create_task(take(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return served

    assert turn(go()) == [0, 2, 3, 4]


def test_memory_is_bounded_and_no_line_is_too_large_to_come_alone() -> None:
    async def go() -> list[str]:
        memory, order = MemoryBudget(100), list[str]()

        async def hold(name: str, size: int) -> None:
            await memory.take(size)
            order.append(name)
            await asyncio.sleep(1)
            order.append(f"{name} ends")
            memory.give_back(size)

        async with asyncio.TaskGroup() as group:
            for name, size in (("a", 60), ("b", 30), ("huge", 1000), ("c", 10)):
                group.create_task(hold(name, size))
        return order

    assert turn(go()) == ["a", "b", "a ends", "b ends", "huge", "huge ends", "c", "c ends"]


def test_room_of_one_who_no_longer_waits_is_anothers() -> None:
    async def go() -> None:
        memory = MemoryBudget(100)
        await memory.take(100)
        waiting = [asyncio.create_task(memory.take(100)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        memory.give_back(100)
        await asyncio.wait_for(waiting[1], 10)

    turn(go())
