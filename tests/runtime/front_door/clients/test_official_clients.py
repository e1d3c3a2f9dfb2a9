"""Official clients against a real front door: answers, errors as their own classes, keys, tokens, usage."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import valkey
from openai import (
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    OpenAI,
    PermissionDeniedError,
    RateLimitError,
)

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.front_door.usage_records import add_up, month_window, of_month, read_records
from inference_blueprints.resources import root
from inference_contracts.door_configuration import DoorBudget
from inference_contracts.usage_record import UsageRecord
from tests.runtime.front_door.clients.conftest import AUDIENCE, TEAMS, USAGE, RunningDoor
from tests.runtime.front_door.clients.stand_in_model import INPUT_TOKENS, OUTPUT_TOKENS, WORDS
from tests.runtime.front_door.clients.sts_tokens import ISSUER, TokenSigner
from tests.runtime.front_door.policy_process import PRICES

pytestmark = pytest.mark.clock

QUESTION: dict[str, Any] = {
    "model": "public/model",
    "messages": [{"role": "user", "content": "Count."}],
    "max_tokens": 9,
}
TEXT = "".join(WORDS)
RED, BLUE = (team.principals[0] for team in TEAMS)


@pytest.fixture(scope="module")
def secret(door: RunningDoor) -> str:
    return door.made_key()


@pytest.fixture(scope="module")
def client(door: RunningDoor, secret: str) -> Iterator[OpenAI]:
    with door.client(secret) as found:
        yield found


def test_answers_and_streams(door: RunningDoor, client: OpenAI) -> None:
    answer = client.chat.completions.create(**QUESTION)
    assert answer.choices[0].message.content == TEXT
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    # The model has another name behind the door, and an alias is the same model.
    assert door.model.seen[-1]["model"] == "served"
    client.chat.completions.create(**{**QUESTION, "model": "alias"})
    parts = list(client.chat.completions.create(**QUESTION, stream=True))
    assert "".join(each.choices[0].delta.content or "" for each in parts if each.choices) == TEXT
    # No part without choices comes with usage that nobody asked for, and the answer ends with its last event.
    assert all(each.choices and each.usage is None for each in parts)
    with client.chat.completions.with_streaming_response.create(**QUESTION, stream=True) as raw:
        assert raw.read().endswith(b"data: [DONE]\n\n")
    asked = client.chat.completions.create(**QUESTION, stream=True, stream_options={"include_usage": True})
    usage = [each.usage for each in asked if each.usage and not each.choices]
    assert [each.completion_tokens for each in usage] == [OUTPUT_TOKENS]
    assert client.embeddings.create(model="public/model", input="x").data[0].embedding == [0.5, 0.25]


def test_models_are_those_that_the_key_may_use(door: RunningDoor, client: OpenAI) -> None:
    assert {each.id for each in client.models.list()} >= {"public/model", "only-red"}
    with door.client(door.made_key("blue")) as other:
        assert "only-red" not in {each.id for each in other.models.list()}
        with pytest.raises(NotFoundError) as refused:
            other.chat.completions.create(**{**QUESTION, "model": "only-red"})
        assert refused.value.code == "model_not_found"
    with door.client(door.made_key(models=("only-red",))) as narrow:
        assert {each.id for each in narrow.models.list()} == {"only-red"}


def test_errors_are_those_of_the_client(door: RunningDoor, client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as unknown:
        client.chat.completions.create(**{**QUESTION, "model": "nobody/knows"})
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(BadRequestError) as long:
        client.chat.completions.create(**{**QUESTION, "messages": [{"role": "user", "content": "too long"}]})
    assert "maximum context length" in long.value.message
    for wrong in ("sk-wrong", "ibk-000000000000-" + "0" * 43):
        with door.client(wrong) as stranger, pytest.raises(AuthenticationError) as refused:
            stranger.chat.completions.create(**QUESTION)
        assert refused.value.code == "invalid_api_key"


def test_limits_of_a_key(door: RunningDoor) -> None:
    # Reserved are 9 tokens of the answer, and a token per byte of the body.
    budget = DoorBudget("key", "", nano_per_day=150_000)
    with door.client(door.made_key(budget=budget)) as poor:
        poor.chat.completions.create(**QUESTION)
        with pytest.raises(RateLimitError) as quota:
            poor.chat.completions.create(**{**QUESTION, "max_tokens": 1000})
    assert (quota.value.code, quota.value.type) == ("insufficient_quota", "insufficient_quota")
    often = DoorBudget("key", "", requests_per_minute=1)
    with door.client(door.made_key(budget=often)) as hasty:
        # The minute may end between two of them, but not between each two.
        refused = [error for _ in range(3) if (error := _refusal(hasty))]
    assert {each.code for each in refused} == {"rate_limit_exceeded"}
    assert 0 < int(refused[-1].response.headers["retry-after"]) <= 60


def _refusal(client: OpenAI) -> RateLimitError | None:
    try:
        client.chat.completions.create(**QUESTION)
    except RateLimitError as error:
        return error
    return None


def test_the_official_node_client(door: RunningDoor, secret: str) -> None:
    poor = door.made_key(budget=DoorBudget("key", "", nano_per_day=150_000))
    script = Path(__file__).with_name("official_node_client.mjs")
    # Node looks for packages beside the script: the repository's are two folders above.
    words = ["node", str(script), door.door.base_url, secret, poor, "sk-wrong"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=root(), timeout=60)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["answer"] == {"text": TEXT, "tokens": OUTPUT_TOKENS}
    assert "".join(each for each in seen["stream"] if each != "no choices") == TEXT
    assert seen["usage"] == OUTPUT_TOKENS
    assert set(seen["models"]) >= {"public/model", "only-red"}
    kinds = {name: (each["kind"], each["code"]) for name, each in seen.items() if name in _REFUSALS}
    assert kinds == _REFUSALS


_REFUSALS = {
    "wrongKey": ("AuthenticationError", "invalid_api_key"),
    "unknownModel": ("NotFoundError", "model_not_found"),
    "poor": ("RateLimitError", "insufficient_quota"),
}


def test_a_revoked_key_is_refused_by_all_replicas_within_five_seconds(door: RunningDoor) -> None:
    secret = door.made_key()
    began = time.monotonic()
    door.acts.revoke(secret.split("-")[1], now=time.time())
    door.wait_for_keys()
    assert time.monotonic() - began < 5
    assert door.statuses(secret) == {401}


def test_both_secrets_of_a_rotated_key_work(door: RunningDoor) -> None:
    old = door.made_key()
    new = door.acts.rotate(old.split("-")[1], now=time.time()).secret
    assert new is not None
    door.wait_for_keys()
    assert door.statuses(new) == door.statuses(old) == {200}


def test_tokens_of_sts_are_their_team(door: RunningDoor) -> None:
    with door.client(door.signer.token(BLUE, AUDIENCE)) as caller:
        assert caller.chat.completions.create(**QUESTION).choices[0].message.content == TEXT
        assert "only-red" not in {each.id for each in caller.models.list()}
    stranger = door.signer.token("arn:aws:iam::123456789012:role/Nobody", AUDIENCE)
    with door.client(stranger) as nobody, pytest.raises(PermissionDeniedError) as refused:
        nobody.chat.completions.create(**QUESTION)
    assert refused.value.code == "unknown_team"


def test_tokens_that_are_not_of_sts_are_refused(door: RunningDoor) -> None:
    now = int(time.time())
    body = {"iss": ISSUER, "aud": AUDIENCE, "sub": RED, "iat": now, "exp": now + 300}
    unsigned = door.signer.signed({"alg": "none", "typ": "JWT"}, body).rpartition(".")[0] + "."
    emulated = door.emulator.client("sts").get_web_identity_token(
        Audience=[AUDIENCE], SigningAlgorithm="ES384", DurationSeconds=300
    )["WebIdentityToken"]
    wrong = {
        "unsigned": unsigned,
        "another algorithm": door.signer.signed({"alg": "ES256", "kid": "EC384_0"}, body),
        "another key": TokenSigner().token(RED, AUDIENCE),
        "expired": door.signer.token(RED, AUDIENCE, exp=now - 120),
        "another audience": door.signer.token(RED, "https://api.other.example.com"),
        "another issuer": door.signer.token(RED, AUDIENCE, iss="https://login.example.com"),
        "of the emulator": emulated,
    }
    assert {name: door.statuses(token, 1) for name, token in wrong.items()} == {key: {401} for key in wrong}


class _Emulated:
    """The account in the emulator."""

    def __init__(self, door: RunningDoor) -> None:
        self.client = door.emulator.client


def _delivered(door: RunningDoor) -> list[UsageRecord]:
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=1), today, today + timedelta(days=1)]
    return list(read_records(cast(Account, _Emulated(door)), USAGE, days))


def test_usage_records_are_the_ledger(door: RunningDoor) -> None:
    """`blueprints usage` prints other numbers than the ledger, or the records lack requests."""
    secret = door.made_key("blue", name="usage")
    key = secret.split("-")[1]
    with door.client(secret) as caller:
        for number in range(6):
            caller.chat.completions.create(**QUESTION, user=f"user-{number % 2} of 'shop'")
            if number % 2:
                list(caller.chat.completions.create(**QUESTION, stream=True))
    assert door.wait_until(lambda: sum(each.key == key for each in _delivered(door)) == 9) < 20
    records = [each for each in _delivered(door) if each.key == key]
    cost = INPUT_TOKENS * PRICES.input_token + OUTPUT_TOKENS * PRICES.output_token
    assert {each.cost_nano for each in records} == {cost}
    window = month_window(None, cast(Any, UTC), datetime.now(UTC))
    [row] = add_up(of_month(records, window), ["key"])
    store = valkey.Valkey(unix_socket_path=str(door.door.store_socket), decode_responses=True)
    [counter] = [
        each for each in store.scan_iter(f"*{key}*") if store.type(each) == "hash" and "open" not in each
    ]
    ledger = cast(dict[str, str], store.hgetall(counter))
    assert (row.requests, row.nano) == (9, 9 * cost)
    assert (int(ledger["M"]), int(ledger["m"])) == (row.nano, int(window.start.timestamp()))
    assert len({each.reservation for each in records}) == 9
    users = add_up(of_month(records, window), ["user"])
    assert {row.names[0]: row.requests for row in users} == {
        "user-0 of 'shop'": 3,
        "user-1 of 'shop'": 3,
        key: 3,
    }
