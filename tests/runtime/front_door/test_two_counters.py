"""A caller's counters and a model's are asked together, and promise together or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from front_door.asked_request import RefusedError
from front_door.door_metrics import DoorMetrics
from front_door.key_snapshot import KeySnapshot
from front_door.known_usage import KnownUsage
from front_door.ledger import Ledger
from front_door.ledger_scripts import RESERVE
from front_door.open_requests import EnvoyLink, OpenRequests
from front_door.policy import Headers, Known, Policy
from front_door.reservations import Signer
from front_door.store import LedgerStore, StoreLostError
from front_door.target_load import TargetLoads

from inference_contracts import door_headers
from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_keys import key_hash, new_key
from tests.runtime.front_door.keys.key_tables import record
from tests.runtime.front_door.policy_process import CHAT, a_configuration

_REFUSED = [0, 1, 1, "999", 60]
_FUTURE = 4_000_000_000


class Store(LedgerStore):
    """Answers when all questions of a turn have come, by the first key of each."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._by_key = answers
        self.turns: list[list[str]] = []
        self.returned: list[str] = []
        self._asked: list[str] = []

    async def script(self, text: str, keys: list[str], words: Sequence[Any]) -> Any:  # noqa: ARG002 -- of the store
        if text != RESERVE:
            self.returned.append(keys[0])
            answer = self._by_key.get("return", [1, 60, *[0] * 8 * (len(keys) - 2)])
        else:
            if not self._asked:
                asyncio.get_running_loop().call_soon(self._turn)
            self._asked.append(keys[0])
            await asyncio.sleep(0)
            answer = self._by_key[keys[0]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _turn(self) -> None:
        self.turns.append(self._asked)
        self._asked = []


def decided(store: Store, on_store_loss: str = "refuse") -> tuple[Headers | RefusedError, Ledger]:
    """Return the decision on a request whose team and model have budgets."""

    async def decide() -> tuple[Headers | RefusedError, Ledger]:
        secret, keys = new_key(), KeySnapshot(None)
        known = record("red", id=secret.id, hashes=(key_hash(secret.secret),), expires=_FUTURE)
        keys._keys[secret.id] = known
        many = 10**15
        budgets = (DoorBudget("team", "red", many), DoorBudget("model", "m", many))
        configuration = a_configuration(*budgets, on_store_loss=on_store_loss, store_loss_nano=many)
        ledger = Ledger(store, configuration.time_zone)
        policy = Policy(
            Known.of(configuration, keys),
            ledger=ledger,
            signer=Signer(b"1" * 32),
            loads=TargetLoads(),
            usage=KnownUsage(),
            opened=OpenRequests(),
            keys=keys,
            metrics=DoorMetrics(),
            replica="one",
        )
        headers = {
            "authorization": f"Bearer {secret.secret}",
            door_headers.MODEL: "m",
            door_headers.BYTES: "9",
        }
        asked = {name.encode(): value.encode() for name, value in headers.items()}
        try:
            return await policy.decide(CHAT, asked, EnvoyLink()), ledger
        except RefusedError as error:
            return error, ledger

    return asyncio.run(decide())


def test_both_are_asked_in_one_turn() -> None:
    """Red if a request waits for the store twice: once for its caller, and then for its model."""
    store = Store({"door:{red}:open": [1, b"a", 60], "door:{/m}:open": [1, b"b", 60]})
    found, _ = decided(store)
    assert isinstance(found, dict)
    assert store.turns == [["door:{red}:open", "door:{/m}:open"]]
    promise = Signer(b"1" * 32).read(found[door_headers.RESERVATION])
    assert promise is not None
    assert (promise.team.generation, promise.model.generation) == ("a", "b")
    assert store.returned == []


@pytest.mark.parametrize(("refuses", "promises"), [("{red}", "{/m}"), ("{/m}", "{red}")])
def test_what_one_promises_is_given_back_if_the_other_refuses(refuses: str, promises: str) -> None:
    """Red if refused requests fill a budget of somebody."""
    store = Store({f"door:{refuses}:open": _REFUSED, f"door:{promises}:open": [1, b"a", 60]})
    found, ledger = decided(store)
    assert isinstance(found, RefusedError)
    assert found.refusal.status == 429
    assert store.returned == [f"door:{promises}:open"]
    assert not ledger.doubtful


def test_what_cannot_be_given_back_now_is_given_back_later() -> None:
    """Red if a request that is refused is admitted because the store goes away meanwhile."""
    answers = {"door:{red}:open": [1, b"a", 60], "door:{/m}:open": _REFUSED, "return": StoreLostError("gone")}
    found, ledger = decided(Store(answers), "admit")
    assert isinstance(found, RefusedError)
    assert found.refusal.status == 429
    assert [slot.tag for slot, _ in ledger.doubtful] == ["door:{red}"]


@pytest.mark.parametrize(("lost", "promises"), [("{red}", "{/m}"), ("{/m}", "{red}")])
@pytest.mark.parametrize("on_loss", ["refuse", "admit"])
def test_what_one_promises_is_given_back_if_the_other_is_lost(lost: str, promises: str, on_loss: str) -> None:
    """Red if a promise stays for which no request is in progress, or a lost one counts as a promise."""
    store = Store({f"door:{lost}:open": StoreLostError("gone"), f"door:{promises}:open": [1, b"a", 60]})
    found, ledger = decided(store, on_loss)
    assert {slot.tag for slot, _ in ledger.doubtful} == {"door:{red}", "door:{/m}"}
    if on_loss == "refuse":
        assert isinstance(found, RefusedError)
        assert found.refusal.status == 503
        return
    assert isinstance(found, dict)
    promise = Signer(b"1" * 32).read(found[door_headers.RESERVATION])
    assert promise is not None
    assert (promise.team.generation, promise.model.generation) == ("-", "-")


def test_a_limit_that_is_passed_refuses_also_if_the_other_counter_is_lost() -> None:
    """Red if a caller passes a budget that is known to be spent because a server of the store is away."""
    store = Store({"door:{red}:open": StoreLostError("gone"), "door:{/m}:open": _REFUSED})
    found, _ = decided(store, "admit")
    assert isinstance(found, RefusedError)
    assert found.refusal.status == 429
