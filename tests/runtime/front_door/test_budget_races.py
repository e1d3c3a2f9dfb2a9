"""Three replicas, 100 clients and one budget of 1,000 requests, while replicas are killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from inference_contracts.door_configuration import DoorBudget
from tests.runtime.front_door.conftest import Platform, StartPolicy
from tests.runtime.front_door.policy_process import a_configuration, wait_for
from tests.runtime.front_door.race_clients import COST, Envoy, Race

pytestmark = pytest.mark.clock

LIMIT = 1000 * COST
CLIENTS, AT_ONCE = 100, 60
PATIENCE_SECONDS = 60.0


def test_a_budget_is_used_up_and_never_passed_while_replicas_are_killed(
    platform: Platform, start_policy: StartPolicy, tmp_path: Path
) -> None:
    """Red if two replicas spend the same money, if a killed one's reservations stay, or if they are lost.

    Red too if more requests are in progress than may be, or a killed replica's count for ever.
    """
    budget = DoorBudget("team", "red", nano_per_day=LIMIT, requests_at_once=AT_ONCE)
    key = platform.new_key("red")
    policies = [start_policy(name, a_configuration(budget, replicas=3)) for name in ("one", "two", "three")]
    envoys = [Envoy(policy) for policy in policies]
    race = Race(envoys, key)
    in_progress: list[int] = []

    def look() -> None:
        with platform.store.client() as store:
            in_progress.append(int(store.hget("door:{red}", "o") or 0))

    async def disturb() -> None:
        while race.finished < 150:
            await asyncio.sleep(0.02)
            look()
        # A policy dies: its Envoy goes on, and another policy process takes its place.
        policies[0].kill()
        await asyncio.sleep(0.3)
        await asyncio.to_thread(policies[0].start)
        while race.finished < 400:
            await asyncio.sleep(0.02)
        # A whole replica dies: nobody will log what it had in progress.
        envoys[1].is_alive = False
        policies[1].kill()
        end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while race.spent < 0.97 * LIMIT and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)

    asyncio.run(race.run(CLIENTS, disturb))
    assert race.cut > 0
    assert race.refused > 0
    assert race.many > 0
    assert 0 < max(in_progress) <= AT_ONCE
    assert 0.95 <= race.spent / LIMIT <= 1.0
    # What was cut is charged too, by the most that it may have cost.
    with platform.store.client() as store:
        wait_for(lambda: [int(each) for each in store.hmget("door:{red}", "R", "o")] == [0, 0])
        assert race.spent <= int(store.hget("door:{red}", "D")) <= LIMIT
