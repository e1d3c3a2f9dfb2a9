"""What happens while the store is away, and when it comes back without its data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import valkey

from inference_contracts import door_names
from inference_contracts.door_configuration import DoorBudget
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from tests.runtime.front_door.conftest import Platform, StartPolicy
from tests.runtime.front_door.policy_process import a_configuration, wait_for
from tests.runtime.front_door.race_clients import COST
from tests.runtime.front_door.test_policy_process import MOST

pytestmark = pytest.mark.clock

LEDGER = "door-ledger"


class OwnStore:
    """A store at a fixed address, which may be killed."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "store.sock")
        self._server = ValkeyServer(folder, {"unixsocket": self.address})

    def start(self) -> None:
        """Start it, without data."""
        Path(self.address).unlink(missing_ok=True)
        self._server.start()

    def kill(self) -> None:
        """Kill it."""
        self._server.kill()

    def counter(self, key: str) -> dict[str, int]:
        """Return the numbers of a counter."""
        with valkey.Valkey(unix_socket_path=self.address, decode_responses=True) as client:
            found: dict[str, str] = client.hgetall(key)
        return {name: int(number) for name, number in found.items() if name != "g"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnStore]:
    running = OwnStore(tmp_path / "store")
    running.start()
    yield running
    running.kill()


def checkpoint(platform: Platform) -> dict[str, Any]:
    """Return the checkpoints by counter."""
    items = platform.emulator.client("dynamodb").scan(TableName=LEDGER)["Items"]
    return {item[door_names.ACCOUNT_ATTRIBUTE]["S"]: int(item["D"]["N"]) for item in items}


def test_an_empty_store_is_filled_before_it_admits_anything(
    platform: Platform, start_policy: StartPolicy, ledger_table: str, store: OwnStore, tmp_path: Path
) -> None:
    """Red if spending is forgotten with the store's data, or if what is in progress is not reserved again."""
    budget = DoorBudget("team", "red", nano_per_day=3 * MOST)
    settings = {"store_host": store.address, "ledger_table": ledger_table}
    policy = start_policy("one", a_configuration(budget), **settings)
    key = platform.known_key("red", policy)
    # One is settled, two are in progress.
    policy.log(policy.ask(key))
    wait_for(lambda: policy.metric("settled_total") == 1)
    open_ones = [policy.ask(key), policy.ask(key)]
    assert [each.status for each in open_ones] == [200, 200]
    wait_for(lambda: checkpoint(platform).get("door:{red}") == COST)
    store.kill()
    lost = policy.ask(key)
    assert (lost.status, lost.code) == (503, "budgets_unavailable")
    assert int(lost.headers["retry-after"]) > 0
    store.start()
    wait_for(lambda: policy.ask(key).status != 503, pause=0.1)
    # One more would have room if the spending, or one of those in progress, were forgotten.
    assert policy.ask(key).code == "insufficient_quota"
    assert store.counter("door:{red}")["D"] == COST
    assert store.counter("door:{red}")["R"] == 2 * MOST
    for each in open_ones:
        policy.log(each)
    wait_for(lambda: store.counter("door:{red}")["R"] == 0)
    assert store.counter("door:{red}")["D"] == 3 * COST
    # A checkpoint never goes back, whatever an older store says.
    wait_for(lambda: checkpoint(platform)["door:{red}"] == 3 * COST)


def test_what_replicas_know_is_not_lost_with_the_store(
    platform: Platform, start_policy: StartPolicy, store: OwnStore
) -> None:
    """Red if spending since the last checkpoint is forgotten although a replica has seen it."""
    configuration = a_configuration(DoorBudget("team", "red", nano_per_day=10 * MOST))
    one, two = (start_policy(name, configuration, store_host=store.address) for name in ("one", "two"))
    key = platform.known_key("red", one, two)
    two.log(two.ask(key))
    wait_for(lambda: two.metric("settled_total") == 1)
    one.ask(key)
    two.log(two.ask(key))
    wait_for(lambda: two.metric("settled_total") == 2)
    store.kill()
    store.start()
    # The first one fills the store, and has seen nothing settled. The other one adds what it knows.
    wait_for(lambda: one.ask(key).status == 200, pause=0.1)
    wait_for(lambda: two.ask(key).status == 200, pause=0.1)
    wait_for(lambda: store.counter("door:{red}")["D"] == 2 * COST)


def test_what_a_fail_over_forgets_is_charged_when_it_ends(
    platform: Platform, start_policy: StartPolicy
) -> None:
    """Red if a request is free because the store has lost its last writes, and with them its reservation."""
    policy = start_policy("one", a_configuration(DoorBudget("team", "red", nano_per_day=3 * MOST)))
    key = platform.known_key("red", policy)
    admitted = policy.ask(key)
    with platform.store.client() as client:
        client.delete("door:{red}:open")
        client.hset("door:{red}", "R", 0)
        policy.log(admitted)
        policy.log(admitted)
        wait_for(lambda: policy.metric("settled_again_total") == 1)
        assert [int(each) for each in client.hmget("door:{red}", "D", "R")] == [COST, 0]


def test_without_the_store_a_replica_admits_its_share_and_charges_it_later(
    platform: Platform, start_policy: StartPolicy, store: OwnStore, tmp_path: Path
) -> None:
    """Red if a replica admits more than its share, nothing, or if what it has admitted is never charged."""
    configuration = a_configuration(
        DoorBudget("team", "red", nano_per_day=10 * MOST),
        on_store_loss="admit",
        store_loss_nano=4 * MOST,
        replicas=2,
    )
    settings = {"store_host": store.address}
    policy = start_policy("one", configuration, **settings)
    key = platform.known_key("red", policy)
    assert policy.ask(key).status == 200
    store.kill()
    answers = [policy.ask(key) for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 503]
    assert policy.metric("admitted_without_store_total") == 2
    policy.log(answers[0])
    policy.log(answers[1])
    store.start()
    wait_for(lambda: policy.metric("settled_total") == 2)
    assert store.counter("door:{red}")["D"] == 2 * COST
    # What is charged counts no more towards the share, which the next loss has to itself.
    store.kill()
    answers = [policy.ask(key) for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 503]
