"""The platform's own programs call models of their own with keys of their own, and nobody else sees these."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from front_door.asked_request import RefusedError
from front_door.callers import Callers
from front_door.key_snapshot import KeySnapshot
from front_door.policy import Known, Policy
from front_door.target_load import TargetLoads

from inference_contracts import door_headers
from inference_contracts.door_configuration import DoorConfiguration
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import KeyRecord, key_hash, new_key
from inference_contracts.door_ledger import windows_at
from inference_contracts.platform_keys import PLATFORM_TEAM, PlatformCaller, way_model
from tests.runtime.front_door.keys.key_tables import NOW, record
from tests.runtime.front_door.policy_process import CHAT, a_configuration, a_model

BATCH = way_model("batch", "m")
CANARY = way_model("canary", "m")
CONFIGURATION = a_configuration(
    models=(
        a_model(),
        a_model(BATCH, caller="batch", teams=("red", "blue"), priority=0),
        a_model(CANARY, caller="canary", teams=(PLATFORM_TEAM,), priority=100),
    )
)


def put(table: KeyTable, **facts: Any) -> str:
    """Write the record of a new key, and return its secret."""
    made = new_key()
    written: KeyRecord = replace(record("red"), id=made.id, hashes=(key_hash(made.secret),), **facts)
    table.put(written, before=None)
    return made.secret


def with_key(secret: str, model: str = "") -> dict[bytes, bytes]:
    return {
        b"authorization": f"Bearer {secret}".encode(),
        b"x-door-model": model.encode(),
        b"x-door-bytes": b"10",
    }


class Asked:
    """A policy that decides, with the keys of a table and a ledger without budgets."""

    def __init__(self, table: KeyTable, configuration: DoorConfiguration) -> None:
        self.keys = KeySnapshot(table, lambda: float(NOW), lambda: float(NOW))
        self.keys.refresh()
        known = replace(
            Known.of(configuration, self.keys), callers=Callers(configuration, self.keys, lambda: float(NOW))
        )
        parts: dict[str, Any] = {
            "ledger": SimpleNamespace(windows=windows_at(NOW, ZoneInfo("UTC"))),
            "signer": SimpleNamespace(write=lambda _: "signed"),
            "loads": TargetLoads(),
            "usage": SimpleNamespace(passed=lambda *_: None),
            "opened": SimpleNamespace(add=lambda *_: None),
            "metrics": SimpleNamespace(
                count=lambda *_: None, refused=lambda _: None, answered=lambda _: None
            ),
        }
        self.policy = Policy(known, keys=self.keys, replica="one", **parts)

    def decide(self, headers: dict[bytes, bytes]) -> dict[str, str]:
        link: Any = SimpleNamespace(is_open=True)
        return asyncio.run(self.policy.decide(CHAT, headers, link))

    def status(self, headers: dict[bytes, bytes]) -> tuple[int, str]:
        with pytest.raises(RefusedError) as refused:
            self.decide(headers)
        return refused.value.refusal.status, refused.value.refusal.code

    def sees(self, secret: str) -> list[str]:
        caller = self.policy.known.callers.identify(with_key(secret))
        return [model.name for model in self.policy.visible_models(caller)]


def test_a_way_has_its_models_and_no_other(key_table: KeyTable) -> None:
    """Red if a person's key reaches a queue's deployments, or batch takes the models of the canary."""
    batch = put(key_table, caller="batch", models=(BATCH,))
    person, named = put(key_table), put(key_table, models=("m", BATCH))
    asked = Asked(key_table, CONFIGURATION)
    assert (asked.decide(with_key(batch, BATCH)))[door_headers.TARGET] == "primary"
    for secret, model in ((person, BATCH), (named, BATCH), (batch, CANARY), (batch, "m")):
        assert asked.status(with_key(secret, model)) == (404, "model_not_found")
    assert (asked.sees(batch), asked.sees(person), asked.sees(named)) == ([BATCH], ["m"], ["m"])


@pytest.mark.parametrize(
    "facts", [{"models": None}, {"models": (CANARY,)}, {"models": (BATCH,), "team": "green"}]
)
def test_a_key_names_its_models_and_its_team_has_them(key_table: KeyTable, facts: dict[str, Any]) -> None:
    secret = put(key_table, caller="batch", **facts)
    asked = Asked(key_table, CONFIGURATION)
    assert asked.status(with_key(secret, BATCH)) == (404, "model_not_found")


@pytest.mark.parametrize(("caller", "priority"), [("batch", "0"), ("canary", "90")])
def test_batch_waits_for_all_others_whatever_it_says(
    key_table: KeyTable, caller: PlatformCaller, priority: str
) -> None:
    """Red if a worker of batch that leaves out its header takes the room of interactive requests."""
    name = way_model(caller, "m")
    secret = put(key_table, caller=caller, models=(name,))
    model = a_model(name, caller=caller, teams=("red",), priority=90)
    asked = Asked(key_table, a_configuration(models=(model,)))
    assert (asked.decide(with_key(secret, name)))[door_headers.PRIORITY] == priority


def test_without_keys_of_people_those_of_the_platform_stay(key_table: KeyTable) -> None:
    """Red if a platform whose people have no API keys refuses its own programs, or admits people's."""
    batch, person = put(key_table, caller="batch", models=(BATCH,)), put(key_table)
    asked = Asked(key_table, replace(CONFIGURATION, api_keys=False))
    asked.decide(with_key(batch, BATCH))
    assert asked.status(with_key(person, "m")) == (401, "invalid_api_key")


def test_what_the_platform_pays_itself_is_counted_and_is_no_team_of_anybody() -> None:
    """Red if the canary's costs are in no checkpoint, or a token may name its team."""
    assert CONFIGURATION.charged_teams == ("red", "blue", PLATFORM_TEAM)
    assert PLATFORM_TEAM not in [team.name for team in CONFIGURATION.teams]
