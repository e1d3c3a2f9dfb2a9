"""Decisions with a real store: at midnight, for projects that callers invent, and for keys with budgets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from front_door import invented_projects
from front_door.asked_request import RefusedError
from front_door.door_metrics import DoorMetrics
from front_door.invented_projects import MOST_OF_CALLER, MOST_OF_TEAM, InventedProjects
from front_door.known_usage import KnownUsage
from front_door.ledger import Ledger
from front_door.ledger_scripts import ALL
from front_door.log_follower import LogLine
from front_door.open_requests import EnvoyLink, OpenRequests
from front_door.policy import Known, Policy
from front_door.reservations import Signer
from front_door.settlement import Settlement
from front_door.store import LedgerStore, StorePlace
from front_door.stored_requests import stored_requests, take_over
from front_door.target_load import TargetLoads
from front_door.wrong_keys import WrongKeys

from inference_contracts import door_headers
from inference_contracts.door_configuration import DoorBudget, DoorConfiguration
from inference_contracts.door_key_acts import key_budget
from inference_contracts.door_keys import key_hash, new_key
from inference_contracts.door_ledger import Windows, windows_at
from inference_contracts.usage_record import UsageRecord
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from tests.runtime.front_door.conftest import FUTURE
from tests.runtime.front_door.keys.key_tables import record
from tests.runtime.front_door.policy_process import CHAT, Answer, a_configuration, a_model, log_line

pytestmark = pytest.mark.clock

TEAM = "door:{red}"
#: What the line of `log_line` costs.
COST = 12 * 200 + 5 * 800
#: What a request reserves: ten bytes, the template, and the model's default.
MOST = (10 + 256) * 200 + 100 * 800


@pytest.fixture
def client(shared_store: ValkeyServer) -> Iterator[Any]:
    with shared_store.client() as opened:
        opened.flushall()
        yield opened


class Replica:
    """A policy with one key of the team `red`, without the rest of its process."""

    def __init__(self, store: LedgerStore, configuration: DoorConfiguration, **key: Any) -> None:
        made = new_key()
        self.secret = made.secret
        self.key = record("red", id=made.id, hashes=(key_hash(made.secret),), expires=FUTURE, **key)
        keys: Any = SimpleNamespace(get={made.id: self.key}.get, age_seconds=0.0, wrong=WrongKeys())
        self.store, self.opened = store, OpenRequests()
        self.usage, self.signer = KnownUsage(), Signer(b"x" * 32)
        self.ledger = Ledger(store, "UTC")
        self.parts: dict[str, Any] = {
            "ledger": self.ledger,
            "signer": self.signer,
            "loads": TargetLoads(),
            "usage": self.usage,
            "opened": self.opened,
            "metrics": DoorMetrics(),
            "replica": "one",
        }
        self.policy = Policy(Known.of(configuration, keys), keys=keys, **self.parts)

    async def ask(self, project: str = "") -> dict[str, str]:
        headers = {
            b"authorization": f"Bearer {self.secret}".encode(),
            b"x-door-model": b"m",
            b"x-door-bytes": b"10",
            b"openai-project": project.encode(),
        }
        return await self.policy.decide(CHAT, headers, EnvoyLink())


def run(server: ValkeyServer, act: Callable[[LedgerStore], Awaitable[None]]) -> None:
    async def whole() -> None:
        store = LedgerStore(StorePlace("127.0.0.1", server.port), ALL)
        running = asyncio.create_task(store.run())
        while not store.has_answered:
            await asyncio.sleep(0.01)
        await act(store)
        running.cancel()

    asyncio.run(whole())


def test_a_request_at_midnight_belongs_to_one_day(shared_store: ValkeyServer, client: Any) -> None:
    """Red if a request is reserved in the new day, and what a dead replica has left is charged to the old."""
    models = (a_model(),)
    budgets = (
        DoorBudget("team", "red", nano_per_day=10**9, enforce="after"),
        DoorBudget("model", "m", nano_per_day=10**9),
    )

    async def act(store: LedgerStore) -> None:
        replica = Replica(store, a_configuration(*budgets, models=models))
        # Nobody has told the replica that a day has begun.
        replica.ledger._windows = windows_at(time.time() - 86400, ZoneInfo("UTC"))
        decided = await replica.ask()
        today = replica.ledger.windows
        assert today.contain(time.time())
        [(_, _, facts)] = [each async for each in stored_requests(store, "door:{/m}")]
        promise = replica.signer.read(decided[door_headers.RESERVATION])
        assert promise is not None
        assert (facts.day, promise.team.day, promise.model.day) == (today.day,) * 3
        assert [int(each) for each in client.hmget("door:{/m}", "R", "o", "d")] == [MOST, 1, today.day]

    run(shared_store, act)


def test_what_is_not_reserved_is_charged_to_the_day_of_its_admission(
    shared_store: ValkeyServer, client: Any
) -> None:
    """Red if a team with `enforce: after` is charged today for what began yesterday, or not at all."""
    budget = DoorBudget("team", "red", nano_per_day=10**9, enforce="after")
    now = time.time()
    yesterday, today = (windows_at(now - days * 86400, ZoneInfo("UTC")) for days in (1, 0))
    before = windows_at(now - 40 * 86400, ZoneInfo("UTC"))

    async def act(store: LedgerStore) -> None:
        replica = Replica(store, a_configuration(budget))
        recorded: list[UsageRecord] = []
        settlement = Settlement(
            replica.policy.slots, lambda record, _: recorded.append(record), **replica.parts
        )

        async def admitted(windows: Windows) -> bytes:
            replica.ledger._windows = windows
            answer = Answer(200, await replica.ask(), b"")
            return log_line(answer).encode()

        lines = [await admitted(each) for each in (before, yesterday, yesterday, today)]
        # They end in another order. The day before yesterday had none.
        for position, number in enumerate((0, 3, 1, 2), 1):
            line = LogLine(position * 1000, position * 1000 + 1, lines[number])
            await settlement.settle([line], is_doubtful=False)
        found = [int(each) for each in client.hmget(TEAM, "d", "D", "e", "E")]
        assert found == [today.day, COST, yesterday.day, 2 * COST]
        assert [each.day for each in recorded] == [before.day, today.day, yesterday.day, yesterday.day]
        if yesterday.month == today.month:
            assert int(client.hget(TEAM, "M")) == 3 * COST

    run(shared_store, act)


def test_callers_invent_a_bounded_number_of_projects(
    shared_store: ValkeyServer, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if a key makes counters in the store without end, or for ever."""
    monkeypatch.setattr(invented_projects, "MOST_OF_CALLER", 2)
    each = DoorBudget("project", "red/*", nano_per_day=10**9)
    named = DoorBudget("project", "red/own", nano_per_day=10**9)

    async def act(store: LedgerStore) -> None:
        replica = Replica(store, a_configuration(each, named))
        for project in ("a", "b", "a", "own", ""):
            await replica.ask(project)
        with pytest.raises(RefusedError) as refused:
            await replica.ask("c")
        assert (refused.value.refusal.status, refused.value.refusal.code) == (403, "too_many_projects")
        # Without a budget of each project, a name has no counter.
        await Replica(store, a_configuration(named)).ask("d")
        # A key that belongs to a project invents nothing.
        await Replica(store, a_configuration(each), project="e").ask()

    run(shared_store, act)
    assert {key.decode() for key in client.keys(f"{TEAM}:p:*")} == {
        f"{TEAM}:p:{name}" for name in ("a", "b", "own", "e")
    }
    # They go when no checkpoint has them any more; the team's own counter stays.
    assert all(69 * 86400 < client.ttl(key) <= 70 * 86400 for key in client.keys(f"{TEAM}:[kp]:*"))
    assert client.ttl(TEAM) == -1


@pytest.mark.parametrize("own", [False, True])
def test_a_caller_with_too_many_requests_in_progress_is_told_so(
    shared_store: ValkeyServer, client: Any, *, own: bool
) -> None:
    """Red if the message speaks of a budget that begins anew, or clients do not ask again by themselves.

    own: Whether the key has the limit of its own, as `blueprints keys create` sets it.
    """
    every = [] if own else [DoorBudget("key", "*", requests_at_once=1)]
    limits = {"budget": key_budget(requests_at_once=1)} if own else {}

    async def act(store: LedgerStore) -> None:
        replica = Replica(store, a_configuration(*every), **limits)
        await replica.ask()
        with pytest.raises(RefusedError) as refused:
            await replica.ask()
        refusal = refused.value.refusal
        assert (refusal.status, refusal.code) == (429, "rate_limit_exceeded")
        assert refusal.headers()["retry-after"] == "1"
        assert "x-should-retry" not in refusal.headers()
        assert refusal.message == (
            f"Requests in progress of the key {replica.key.id!r}: 1, and at most 1 at once. Ask again when "
            "one of them has ended."
        )
        assert int(client.hget(f"{TEAM}:k:{replica.key.id}", "o")) == 1

    run(shared_store, act)


def test_one_caller_cannot_take_all_names_of_its_team() -> None:
    names = InventedProjects()
    for caller in range(4):
        for number in range(MOST_OF_CALLER):
            assert names.most("red", f"{caller}", f"{caller}-{number}", 1) is None
        assert names.most("red", f"{caller}", "one more", 1) == MOST_OF_CALLER
    assert names.most("red", "another", "one more", 1) == MOST_OF_TEAM
    assert names.most("red", "another", "0-0", 1) is None
    assert names.most("blue", "another", "one more", 1) is None
    assert names.most("red", "0", "tomorrow", 2) is None


def test_what_a_key_with_a_budget_of_its_own_has_in_progress_is_taken_over_and_charged(
    shared_store: ValkeyServer, client: Any
) -> None:
    """Red if a key's own budget forgets what a dead process has admitted: nothing else limits the team."""
    own = DoorBudget("key", "", nano_per_day=10**9)

    async def act(store: LedgerStore) -> None:
        replica = Replica(store, a_configuration(), budget=own)
        await replica.ask()
        opened = OpenRequests()
        await take_over(
            "one",
            lambda: replica.policy.known.budgets,
            replica.policy.slots,
            store=store,
            opened=opened,
            loads=TargetLoads(),
            started=time.time(),
        )
        [again] = opened.with_tag(TEAM)
        assert again.slot.keys[-1] == f"{TEAM}:k:{replica.key.id}"
        parts = {**replica.parts, "opened": opened}
        settlement = Settlement(replica.policy.slots, lambda *_: None, **parts)
        [(identifier, _, facts)] = [each async for each in stored_requests(store, TEAM)]
        assert await settlement.settle_orphan(again.slot, identifier, replace(facts, replica="dead"))
        shares = [
            (counter.scope, share) for counter, _, share in replica.usage.shares(replica.ledger.windows)
        ]
        assert shares == [("key", MOST / 10**9)]

    run(shared_store, act)
