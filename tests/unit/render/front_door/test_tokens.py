"""Which tokens Envoy accepts, and what the policy gets of them, with the real Envoy."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from inference_blueprints.serving.types.front_door import DoorKeySet
from inference_contracts import door_headers
from tests.unit.render.front_door import tokens
from tests.unit.render.front_door.door_process import CHAT, Answer, Door, reply, running_door
from tests.unit.render.front_door.small_plans import small_plan
from tests.unit.render.front_door.tokens import AUDIENCE, ISSUER, LATER, token

pytestmark = pytest.mark.clock

_OTHER = "https://other.example.com"
_CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "me", "exp": LATER, "team": "search"}
_KEY_SETS = (
    DoorKeySet(ISSUER, AUDIENCE, None, tokens.key_set("own")),
    DoorKeySet(_OTHER, AUDIENCE, None, tokens.key_set("other")),
)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("tokens"), small_plan(_KEY_SETS)) as found:
        found.policy.answer = lambda handler, _: reply(handler, 200, headers={door_headers.TARGET: "one"})
        yield found


def asked(door: Door, bearer: str, path: str = CHAT) -> Answer:
    return door.ask("POST", path, {"model": "m"}, {"authorization": f"Bearer {bearer}"})


def payload(door: Door) -> dict[str, object]:
    text = door.policy.seen[-1].headers[door_headers.TOKEN]
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def test_the_policy_gets_the_claims_and_never_the_token(door: Door) -> None:
    own = token()
    assert asked(door, own).status == 200
    assert payload(door) == _CLAIMS
    assert own not in str(door.policy.seen[-1].headers)
    assert own not in str(door.engine.seen[-1].headers)
    assert asked(door, token("other", iss=_OTHER)).status == 200
    assert payload(door)["iss"] == _OTHER


WRONG = {
    "no algorithm": tokens.unsigned(_CLAIMS, "none"),
    "no algorithm, in capitals": tokens.unsigned(_CLAIMS, "NONE"),
    "a signature with the public key as the secret": tokens.hashed(_CLAIMS, tokens.public_pem("own")),
    "another issuer's key": token("other"),
    "another issuer": token(iss="https://evil.example.com"),
    "the issuer of another key": token(iss=_OTHER),
    "another audience": token(aud="https://else.example.com"),
    "no audience": token(aud=None),
    "no issuer": token(iss=None),
    "no end": token(exp=None),
    "an end in the past": token(exp=1_000_000_000),
    "a begin in the future": token(nbf=LATER - 1),
    "an unknown key": tokens.signed({"alg": "RS256", "kid": "new"}, _CLAIMS, "unknown"),
    "a key of its own": tokens.signed(
        {"alg": "RS256", "jwk": tokens.key_set("unknown")["keys"][0]}, _CLAIMS, "unknown"
    ),
    "a key at an address of its own": tokens.signed(
        {"alg": "RS256", "jku": "http://127.0.0.1/keys"}, _CLAIMS, "unknown"
    ),
    "claims that were changed": token().replace(
        token().split(".")[1], tokens.encoded({**_CLAIMS, "team": "evil"})
    ),
    "a signature that is cut": token()[:-4],
    "no token": "hello",
    "two tokens": f"{token()} {token()}",
    "an end that is text": token(exp="never"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_token_that_is_wrong_is_refused_before_the_policy(door: Door, case: str) -> None:
    before = len(door.policy.seen)
    answer = asked(door, WRONG[case])
    assert (answer.status, answer.code) == (401, "invalid_api_key"), answer
    assert "the token is not valid" in answer.document["error"]["message"]
    assert len(door.policy.seen) == before


def test_a_payload_cannot_be_given_without_a_token(door: Door) -> None:
    """An API key with forged claims: the policy gets the key alone."""
    forged = {"authorization": "Bearer ibk-abc-def", door_headers.TOKEN: tokens.encoded(_CLAIMS)}
    assert door.ask("POST", CHAT, {"model": "m"}, forged).status == 200
    assert door_headers.TOKEN not in door.policy.seen[-1].headers
    twice = door.ask("POST", CHAT, {"model": "m"}, {"x-api-key": token(), "authorization": ""})
    assert twice.status == 401


def test_a_token_is_read_in_one_place_only(door: Door) -> None:
    """By default Envoy takes a query parameter too, which logs of other hops show."""
    before = len(door.policy.seen)
    answer = door.ask("POST", f"{CHAT}?access_token={token()}", {"model": "m"}, {"authorization": "Bearer x"})
    assert (answer.status, len(door.policy.seen)) == (401, before)


def test_a_key_that_the_issuer_withdraws_is_refused(door: Door) -> None:
    """Red if a token that was once checked stays valid when its key is gone."""
    assert asked(door, token()).status == 200
    rotated = (DoorKeySet(ISSUER, AUDIENCE, None, tokens.key_set("new")), _KEY_SETS[1])
    door.write(small_plan(rotated))
    try:
        door.wait_until(lambda: asked(door, token("new")).status == 200)
        assert asked(door, token()).status == 401
    finally:
        door.write(small_plan(_KEY_SETS))
        door.wait_until(lambda: asked(door, token()).status == 200)


def test_the_signature_of_a_token_is_checked_once(door: Door) -> None:
    """Red if Envoy checks it for each request, or takes another token for one that it remembers."""
    own = token(sub="once")
    before = door.counter("http.door.jwt_authn.jwt_cache_hit")
    assert [asked(door, own).status for _ in range(3)] == [200, 200, 200]
    assert door.counter("http.door.jwt_authn.jwt_cache_hit") == before + 2
    head, claims, signature = own.split(".")
    other = token(sub="other").split(".")[2]
    assert asked(door, f"{head}.{claims}.{other}").status == 401
    assert asked(door, f"{head}.{tokens.encoded({**_CLAIMS, 'sub': 'you'})}.{signature}").status == 401
