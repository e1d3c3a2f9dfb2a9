"""The scripts of the ledger in a real store: windows, clocks, limits per minute, repeated settlements."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from front_door.ledger import Exceeded, Ledger, Reservation, Unreserved
from front_door.ledger_counters import Budgets, LedgerSlot
from front_door.ledger_scripts import ALL
from front_door.store import LedgerStore, StorePlace

from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_ledger import windows_at
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from tests.runtime.front_door.policy_process import a_configuration

pytestmark = pytest.mark.clock

TEAM = "door:{red}"
UTC = ZoneInfo("UTC")


@pytest.fixture
def client(shared_store: ValkeyServer) -> Iterator[Any]:
    with shared_store.client() as opened:
        opened.flushall()
        yield opened


def slot(**limits: Any) -> LedgerSlot:
    return Budgets(a_configuration(DoorBudget("team", "red", **limits))).of_caller("red", None, None)


def run(
    server: ValkeyServer,
    act: Callable[[Ledger], Awaitable[None]],
    clock: Callable[[], float] = time.time,
    zone: str = "UTC",
) -> None:
    """Let a ledger act."""

    async def whole() -> None:
        store = LedgerStore(StorePlace("127.0.0.1", server.port), ALL)
        running = asyncio.create_task(store.run())
        while not store.has_answered:
            await asyncio.sleep(0.01)
        await act(Ledger(store, zone, clock=clock))
        running.cancel()

    asyncio.run(whole())


async def reserve(ledger: Ledger, where: LedgerSlot, nano: int, name: str = "a", tokens: int = 0) -> Any:
    return await ledger.reserve(where, name, nano, tokens, f"{nano} {tokens} []")


def test_a_new_day_begins_with_nothing_spent_and_yesterday_can_still_be_settled(
    shared_store: ValkeyServer, client: Any
) -> None:
    """Red if yesterday's spending limits today, or a stream over midnight is charged to the wrong day."""
    today = windows_at(time.time(), UTC)
    yesterday = windows_at(today.day - 3600, UTC)
    client.hset(TEAM, mapping={"g": "gen", "d": yesterday.day, "D": 100, "m": today.month, "M": 100})
    limited = slot(nano_per_day=100, nano_per_month=1000)

    async def act(ledger: Ledger) -> None:
        assert isinstance(await reserve(ledger, limited, 60), Reservation)
        # A request of yesterday ends now.
        client.hset(f"{TEAM}:open", "old", "30 0 []")
        client.hincrby(TEAM, "R", 30)
        of_yesterday = Reservation("gen", yesterday.day, today.month, 0)
        await ledger.settle(limited, "old", 7, 0, of_yesterday)
        assert isinstance(await reserve(ledger, limited, 40, "b"), Reservation)
        assert isinstance(await reserve(ledger, limited, 1, "c"), Exceeded)

    run(shared_store, act)
    found = {name.decode(): value.decode() for name, value in client.hgetall(TEAM).items()}
    assert (found["d"], found["D"], found["e"], found["E"]) == (
        str(today.day),
        "0",
        str(yesterday.day),
        "107",
    )
    assert (found["M"], found["R"]) == ("107", "100")


def test_a_clock_that_goes_back_opens_no_window(shared_store: ValkeyServer, client: Any) -> None:
    """Red if a store whose clock was ahead, and is set right, forgets what was spent."""
    tomorrow = windows_at(time.time() + 86400, UTC)
    later = windows_at(time.time() + 40 * 86400, UTC)
    client.hset(TEAM, mapping={"g": "gen", "d": tomorrow.day, "D": 100, "m": later.month, "M": 100})

    async def act(ledger: Ledger) -> None:
        of_day = await reserve(ledger, slot(nano_per_day=100), 1)
        of_month = await reserve(ledger, slot(nano_per_month=100), 1)
        assert [of_day.kind, of_month.kind] == [1, 2]

    run(shared_store, act)


@pytest.mark.parametrize("days", [-1, 1, 40])
def test_a_replica_whose_clock_is_wrong_begins_no_new_day(
    shared_store: ValkeyServer, client: Any, days: int
) -> None:
    """Red if one clock alone, of the store or of a replica, gives a team a new budget."""
    today = windows_at(time.time(), UTC)
    client.hset(TEAM, mapping={"g": "gen", "d": today.day, "D": 100, "m": today.month, "M": 100})

    limited = slot(nano_per_day=103, nano_per_month=1000)

    async def act(ledger: Ledger) -> None:
        reservation = await reserve(ledger, limited, 1)
        assert ledger.clocks_differ
        await ledger.settle(limited, "a", 1, 0, reservation)
        refused = await reserve(ledger, limited, 3)
        assert (refused.kind, refused.used) == (1, 101)
        right = Ledger(ledger._store, "UTC")
        assert isinstance(await reserve(right, limited, 2, "b"), Reservation)

    run(shared_store, act, lambda: time.time() + days * 86400)
    assert [int(each) for each in client.hmget(TEAM, "d", "D", "M")] == [today.day, 101, 101]


def test_limits_per_minute_count_requests_and_tokens(shared_store: ValkeyServer, client: Any) -> None:
    """Red if a limit per minute is not one, or what a settlement gives back is not."""

    async def within_a_minute(ledger: Ledger) -> bool:
        """Return False if a minute has ended meanwhile."""
        client.flushall()
        limited = slot(requests_per_minute=3, tokens_per_minute=100)
        first = await reserve(ledger, limited, 1, "a", tokens=90)
        refused = await reserve(ledger, limited, 1, "b", tokens=20)
        await ledger.settle(limited, "a", 1, 30, first)
        second = await reserve(ledger, limited, 1, "c", tokens=70)
        third = await reserve(ledger, limited, 1, "d")
        fourth = await reserve(ledger, limited, 1, "e")
        if len({each.minute for each in (first, second, third) if isinstance(each, Reservation)}) != 1:
            return False
        if first.minute != int(client.time()[0]) // 60:
            return False
        assert (refused.kind, refused.limit, refused.used) == (4, 100, 90)
        assert 1 <= refused.resets_in <= 60
        assert isinstance(second, Reservation)
        assert isinstance(third, Reservation)
        assert (fourth.kind, fourth.used) == (3, 3)
        return True

    async def act(ledger: Ledger) -> None:
        while not await within_a_minute(ledger):
            pass

    run(shared_store, act)


def test_requests_at_once_are_those_of_all_replicas(shared_store: ValkeyServer, client: Any) -> None:
    """Red if a settlement, or what a dead replica has left, gives no room back, or gives it back twice."""
    limited = slot(requests_at_once=3)

    async def act(ledger: Ledger) -> None:
        replicas = [ledger, *(Ledger(ledger._store, "UTC") for _ in range(2))]
        found = [await reserve(each, limited, 1, name) for each, name in zip(replicas, "abc", strict=True)]
        refused = await reserve(replicas[0], limited, 1, "d")
        assert isinstance(refused, Exceeded)
        assert (refused.kind, refused.limit, refused.used, refused.resets_in) == (5, 3, 3, 1)
        for _ in range(2):
            await replicas[0].settle(limited, "a", 1, 1, found[0])
        assert isinstance(await reserve(replicas[1], limited, 1, "e"), Reservation)
        assert isinstance(await reserve(replicas[1], limited, 1, "f"), Exceeded)
        # Another replica settles what a dead one has left.
        await replicas[2].settle(limited, "b", 1, 1, found[1])
        assert isinstance(await reserve(replicas[2], limited, 1, "g"), Reservation)
        assert client.hget(TEAM, "o") == b"3"

    run(shared_store, act)


def test_a_budget_that_is_newer_than_a_reservation_has_nothing_to_give_back(
    shared_store: ValkeyServer, client: Any
) -> None:
    """Red if a project whose budget is added gets room that nobody has taken."""
    team, project = "red", DoorBudget("project", "red/p", nano_per_day=5, requests_at_once=1)
    before = slot(nano_per_day=100)
    budgets = Budgets(a_configuration(DoorBudget("team", "red", nano_per_day=100), project))
    after = budgets.of_caller(team, "p", None)

    async def act(ledger: Ledger) -> None:
        found = await reserve(ledger, before, 50, "old")
        await ledger.settle(after, "old", 1, 1, found)
        assert client.hmget("door:{red}:p:p", "R", "o") == [b"0", b"0"]
        assert isinstance(await reserve(ledger, after, 5, "new"), Exceeded)
        assert isinstance(await reserve(ledger, after, 4, "new"), Reservation)
        assert isinstance(await reserve(ledger, after, 0, "next"), Exceeded)

    run(shared_store, act)


def test_a_settlement_counts_once_whatever_is_repeated(shared_store: ValkeyServer, client: Any) -> None:
    """Red if a line that is read again is charged again, or frees more than was reserved."""
    limited, free = slot(nano_per_day=100), slot(nano_per_day=100, enforce="after")

    async def act(ledger: Ledger) -> None:
        reservation = await reserve(ledger, limited, 60)
        assert await ledger.settle(limited, "a", 10, 0, reservation) is not None
        assert await ledger.settle(limited, "a", 10, 0, reservation) is None
        # Never reserved here: nothing to settle.
        assert await ledger.settle(limited, "never", 10, 0, reservation) is None
        windows = ledger.windows
        for replica, position in (("one", 100), ("one", 100), ("one", 50), ("two", 60), ("one", 200)):
            cost = Unreserved(free, windows.day, windows.month)
            cost.add(position, 5, 1)
            await ledger.charge(cost, replica)

    run(shared_store, act)
    found = client.hgetall(TEAM)
    assert (int(found[b"D"]), int(found[b"R"]), int(found[b"M"])) == (25, 0, 25)


def test_what_was_lost_with_the_data_is_charged_in_full(shared_store: ValkeyServer, client: Any) -> None:
    """Red if a request that was admitted before the store lost its data is free."""
    limited = slot(nano_per_day=100)

    async def act(ledger: Ledger) -> None:
        reservation = await reserve(ledger, limited, 60)
        client.flushall()
        assert await ledger.settle(limited, "a", 10, 0, reservation) is not None

    run(shared_store, act)
    assert int(client.hget(TEAM, "D")) == 10
