"""Who asks: valid secrets of keys, principals of teams, and what wrong keys are told."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from front_door.asked_request import RefusedError
from front_door.callers import OLDEST_SNAPSHOT_SECONDS, Callers, DoorCaller
from front_door.key_snapshot import KeySnapshot
from front_door.refusals import DoorRefusal
from front_door.wrong_keys import MOST_ADDRESSES, MOST_WRONG, WINDOW_SECONDS, WrongKeys

from inference_contracts.door_configuration import DoorBudget, DoorConfiguration, DoorIssuer
from inference_contracts.door_key_acts import KeyActs, KeyRequest, KeyRequestError
from inference_contracts.door_key_table import bucket_of
from inference_contracts.door_keys import new_key
from tests.runtime.front_door.keys.key_tables import ACCOUNT, DAY, NOW, RULES, TABLE

ISSUER = "https://0a1b2c3d.tokens.sts.global.api.aws"
AUDIENCE = "https://api.models.example.com"
CONFIGURATION = DoorConfiguration(
    platform="chat",
    models=(),
    teams=RULES.teams,
    budgets=(),
    issuers=(
        DoorIssuer(ISSUER, AUDIENCE, "sub", is_sts=True),
        DoorIssuer("https://login.example.com", "chat", "department"),
    ),
    api_keys=True,
)


class Clock:
    """Two clocks that a test moves: seconds since 1970, and seconds since some time."""

    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(acts: KeyActs, clock: Clock) -> KeySnapshot:
    return KeySnapshot(acts.table, clock, clock)


@pytest.fixture
def callers(keys: KeySnapshot, clock: Clock) -> Callers:
    return Callers(CONFIGURATION, keys, clock)


def secret_of(acts: KeyActs, **facts: Any) -> str:
    """Return the secret of a new key."""
    change = acts.create(KeyRequest(**{"team": "search", "name": "ci", **facts}), now=NOW)
    assert change.secret is not None
    return change.secret


def with_key(secret: str, address: str = "10.0.0.7") -> Mapping[bytes, bytes]:
    return {b"authorization": f"Bearer {secret}".encode(), b"x-door-address": address.encode()}


def refusal(callers: Callers, headers: Mapping[bytes, bytes]) -> DoorRefusal:
    with pytest.raises(RefusedError) as refused:
        callers.identify(headers)
    return refused.value.refusal


def test_a_key_is_known_after_the_next_look_and_refused_after_the_one_behind_its_revocation(
    acts: KeyActs, keys: KeySnapshot, callers: Callers
) -> None:
    secret = secret_of(acts, project="web", models=("qwen3",))
    keys.refresh()
    caller = callers.identify(with_key(secret))
    assert (caller.team, caller.project, caller.models) == ("search", "web", frozenset({"qwen3"}))
    assert callers.identify({b"x-api-key": secret.encode()}) == caller
    assert caller.key is not None
    acts.revoke(caller.key, now=NOW)
    keys.refresh()
    assert refusal(callers, with_key(secret)).status == 401
    # Nor does a key that nobody can use take memory.
    assert keys.get(caller.key) is None


def test_both_secrets_of_a_rotated_key_are_valid_until_the_overlap_ends(
    acts: KeyActs, keys: KeySnapshot, callers: Callers, clock: Clock
) -> None:
    old = secret_of(acts)
    keys.refresh()
    key = callers.identify(with_key(old)).key
    assert key is not None
    new = acts.rotate(key, now=NOW, overlap_hours=1).secret
    assert new is not None
    keys.refresh()
    assert callers.identify(with_key(old)) == callers.identify(with_key(new))
    clock.now += 3600
    keys.refresh()
    assert callers.identify(with_key(new)).key == key
    assert refusal(callers, with_key(old)).code == "invalid_api_key"


def test_an_expired_key_is_refused(acts: KeyActs, keys: KeySnapshot, callers: Callers, clock: Clock) -> None:
    secret = secret_of(acts, days=1)
    keys.refresh()
    caller = callers.identify(with_key(secret))
    clock.now += DAY
    keys.refresh()
    assert refusal(callers, with_key(secret)).code == "invalid_api_key"
    # Nor does it take memory; the table keeps it.
    assert keys.get(caller.key or "") is None
    assert [each.id for each in acts.table.all()] == [caller.key]


def test_a_key_that_cannot_be_read_is_refused_and_the_others_are_not(
    acts: KeyActs,
    keys: KeySnapshot,
    callers: Callers,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Red if one item of the table stops the reading of all, or if what was known of its key stays valid."""
    bad = secret_of(acts)
    keys.refresh()
    broken = callers.identify(with_key(bad)).key or ""
    place = {"bucket": {"S": bucket_of(broken)}, "id": {"S": broken}}
    client: Any = acts.table.client
    whole = client.get_item(TableName=TABLE, Key=place)["Item"]
    good = [secret_of(acts, name=f"ci {number}") for number in range(8)]
    for content in ("{", '{"id": "x"}', '{"id": "x", "budget": 5}'):
        client.put_item(TableName=TABLE, Item={**whole, "record": {"S": content}})
        keys.refresh()
    clock.now += OLDEST_SNAPSHOT_SECONDS
    keys.refresh()
    assert [callers.identify(with_key(each)).team for each in good] == ["search"] * 8
    assert refusal(callers, with_key(bad)).code == "invalid_api_key"
    assert keys.unreadable == 1
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(each["event"], each["key"]) for each in lines] == [("API key not read", broken)] * 3
    # Who administers keys is told which item it is.
    with pytest.raises(KeyRequestError, match=broken):
        acts.list()
    client.put_item(TableName=TABLE, Item=whole)
    keys.refresh()
    assert callers.identify(with_key(bad)).key == broken
    assert keys.unreadable == 0


def test_a_budget_of_a_newer_release_does_not_make_its_key_unreadable(
    acts: KeyActs, keys: KeySnapshot, callers: Callers
) -> None:
    secret = secret_of(acts, budget=DoorBudget("key", "", nano_per_day=5))
    key = next(acts.table.all())
    place = {"bucket": {"S": bucket_of(key.id)}, "id": {"S": key.id}}
    client: Any = acts.table.client
    item = client.get_item(TableName=TABLE, Key=place)["Item"]
    values = json.loads(item["record"]["S"])
    values["budget"]["later"] = 1
    client.put_item(TableName=TABLE, Item={**item, "record": {"S": json.dumps(values)}})
    keys.refresh()
    budget = callers.identify(with_key(secret)).budget
    assert budget is not None
    assert budget.nano_per_day == 5


def test_who_tries_many_keys_is_told_to_wait(
    acts: KeyActs, keys: KeySnapshot, callers: Callers, clock: Clock
) -> None:
    secret = secret_of(acts)
    keys.refresh()
    guesses = [with_key(new_key(secret.split("-")[1]).secret) for _ in range(MOST_WRONG)]
    assert {refusal(callers, each).status for each in guesses} == {401}
    clock.now += 10
    wait = refusal(callers, with_key("sk-anything"))
    assert (wait.status, wait.code, wait.retry_after) == (429, "too_many_wrong_keys", 50)
    # Neither other addresses nor valid keys suffer, also behind one address.
    assert refusal(callers, with_key("sk-anything", "10.0.0.8")).status == 401
    assert callers.identify(with_key(secret)).team == "search"
    clock.now += 50
    assert refusal(callers, with_key("sk-anything")).status == 401


def test_a_new_configuration_forgets_no_guesses(keys: KeySnapshot, callers: Callers, clock: Clock) -> None:
    for _ in range(MOST_WRONG):
        refusal(callers, with_key("sk-x"))
    assert refusal(Callers(CONFIGURATION, keys, clock), with_key("sk-x")).status == 429


def test_wrong_keys_cost_bounded_memory() -> None:
    wrong = WrongKeys(lambda: 0.0)
    for _ in range(MOST_WRONG):
        wrong.count(b"10.0.0.7")
    for number in range(MOST_ADDRESSES * 2):
        wrong.count(str(number).encode())
        if number % 1000 == 0:
            wrong.count(b"10.0.0.7")
    assert len(wrong._windows) == MOST_ADDRESSES
    assert wrong.count(b"10.0.0.7") == WINDOW_SECONDS


def test_addresses_of_one_ipv6_network_count_together() -> None:
    wrong = WrongKeys(lambda: 0.0)
    waits = [wrong.count(f"2001:db8:1:2::{each:x}".encode()) for each in range(MOST_WRONG + 1)]
    assert waits[-1] is not None
    assert wrong.count(b"2001:db8:1:3::1") is None


def test_every_key_is_compared_the_same_number_of_times(
    acts: KeyActs, keys: KeySnapshot, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An answer whose time tells which identifiers exist, or which secret of a rotated key is the old one.
    secret = secret_of(acts)
    other = secret_of(acts, name="rotated")
    acts.rotate(other.split("-")[1], now=NOW)
    keys.refresh()
    compared: list[tuple[str, str]] = []

    def count(one: str, two: str) -> bool:
        compared.append((one, two))
        return one == two

    monkeypatch.setattr(hmac, "compare_digest", count)
    counts = []
    for each in (secret, other, new_key(secret.split("-")[1]).secret, new_key().secret):
        before = len(compared)
        with contextlib.suppress(RefusedError):
            callers.identify(with_key(each))
        counts.append(len(compared) - before)
    assert counts == [2, 2, 2, 2]


def _token(**claims: Any) -> Mapping[bytes, bytes]:
    plain = {"iss": ISSUER, "aud": AUDIENCE, "sub": f"arn:aws:iam::{ACCOUNT}:role/teams/Search"}
    payload = base64.urlsafe_b64encode(json.dumps({**plain, **claims}).encode()).rstrip(b"=")
    return {b"x-door-token": payload}


@pytest.mark.parametrize(
    "subject",
    [
        f"arn:aws:iam::{ACCOUNT}:role/teams/Search",
        f"arn:aws:iam::{ACCOUNT}:role/Search",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/Search/anna",
    ],
)
def test_a_role_is_its_team_with_and_without_path(callers: Callers, subject: str) -> None:
    caller: DoorCaller = callers.identify(_token(sub=subject))
    assert (caller.team, caller.subject, caller.key) == ("search", subject, None)


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"sub": f"arn:aws:iam::{ACCOUNT}:role/Nobody"}, "unknown_team"),
        ({"sub": "arn:aws:iam::999999999999:role/Search"}, "unknown_team"),
        ({"sub": f"arn:aws:iam::{ACCOUNT}:user/Search"}, "unknown_team"),
        ({"sub": ""}, "unknown_team"),
        ({"sub": None}, "unknown_team"),
        # The claim of another issuer, and an audience that is not this platform's.
        ({"sub": "x", "department": "search"}, "unknown_team"),
        ({"aud": "https://api.other.example.com"}, "invalid_token"),
        ({"aud": []}, "invalid_token"),
        ({"iss": "https://evil.example.com"}, "invalid_token"),
        # The other issuer's tokens have another audience, and no principals.
        ({"iss": "https://login.example.com"}, "invalid_token"),
        ({"iss": "https://login.example.com", "aud": "chat"}, "unknown_team"),
        ({"iss": "https://login.example.com", "aud": "chat", "department": ["search"]}, "unknown_team"),
    ],
)
def test_tokens_of_nobody(callers: Callers, claims: dict[str, Any], code: str) -> None:
    assert refusal(callers, _token(**claims)).code == code


def test_a_claim_names_the_team(callers: Callers) -> None:
    headers = _token(iss="https://login.example.com", aud=["other", "chat"], sub="anna", department="adverts")
    assert callers.identify(headers).team == "adverts"


def test_keys_are_refused_where_the_platform_has_none(acts: KeyActs, keys: KeySnapshot) -> None:
    secret = secret_of(acts)
    keys.refresh()
    closed = Callers(replace(CONFIGURATION, api_keys=False), keys, lambda: float(NOW))
    assert refusal(closed, with_key(secret)).status == 401


def test_keys_that_were_not_read_for_minutes_are_refused(
    acts: KeyActs, keys: KeySnapshot, callers: Callers, clock: Clock
) -> None:
    # A replica that cannot read the table goes on to admit keys that were revoked long ago.
    secret = secret_of(acts)
    keys.refresh()
    clock.now += 301
    refused = refusal(callers, with_key(secret))
    assert (refused.status, refused.code) == (503, "keys_unavailable")
