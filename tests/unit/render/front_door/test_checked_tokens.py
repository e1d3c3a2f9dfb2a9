"""Which checked tokens Envoy may remember."""

from __future__ import annotations

from dataclasses import replace

from inference_blueprints.render.front_door.tokens import token_filters
from inference_blueprints.serving.types.front_door import DoorKeySet

_GIVEN = DoorKeySet("https://a.example.com", "door", None, {"keys": []})
_FETCHED = replace(_GIVEN, issuer="https://b.example.com", url="https://b.example.com/keys", inline=None)


def test_tokens_of_fetched_keys_are_not_remembered() -> None:
    """Red if a token is accepted for its whole life after its issuer has withdrawn the key."""
    [checked] = token_filters((_GIVEN, _FETCHED))
    providers = checked["typed_config"]["providers"].values()
    found = {each["issuer"]: "jwt_cache_config" in each for each in providers}
    assert found == {_GIVEN.issuer: True, _FETCHED.issuer: False}
