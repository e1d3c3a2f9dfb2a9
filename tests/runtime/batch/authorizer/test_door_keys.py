"""A key of the front door opens the batch API for its team, and no key that may do less than its team."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

from batch.api.api_request import ApiError, caller_of
from batch.authorizer.caller_identity import CallerIdentity
from batch.authorizer.handler import Authorizer, UnauthorizedError
from inference_contracts.batch_configuration import Configuration
from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import KeyRecord, key_hash, new_key
from tests.runtime.batch.authorizer.test_authorizer import event
from tests.runtime.batch.resources import CONFIGURATION, REGION, SEARCH
from tests.runtime.front_door.keys.key_tables import record

PLATFORM = Configuration.from_json(json.dumps(CONFIGURATION))
FUTURE = 4_000_000_000


class Keys:
    """A table with one key."""

    def __init__(self, **facts: Any) -> None:
        self.made = new_key()
        plain = record("search", id=self.made.id, hashes=(key_hash(self.made.secret),), expires=FUTURE)
        self.record = replace(plain, **facts)

    def get(self, identifier: str) -> KeyRecord | None:
        return self.record if identifier == self.record.id else None


def decide(keys: Keys | None, secret: str, *limited: str) -> dict[str, Any]:
    authorizer = Authorizer(
        replace(PLATFORM, limited_keys=limited),
        cast("CallerIdentity", None),
        region=REGION,
        remembered_seconds=300,
        keys=cast("KeyTable", keys),
    )
    return authorizer.decide(event(f"Bearer {secret}"))


def test_a_key_is_its_team_s() -> None:
    keys = Keys()
    answer = decide(keys, keys.made.secret)
    assert answer["policyDocument"]["Statement"][0]["Effect"] == "Allow"
    caller = f"key {keys.made.id}"
    assert answer["context"] == {"principal": caller, "key": keys.made.id, "team": "search"}
    sent = APIGatewayProxyEvent({"requestContext": {"authorizer": answer["context"]}})
    known = caller_of(sent, PLATFORM)
    assert (known.principal, known.team.name) == (caller, "search")


@pytest.mark.parametrize(
    "facts",
    [{"revoked": int(time.time())}, {"expires": 1}, {"hashes": (key_hash("another"),)}, {"team": "gone"}],
)
def test_a_key_that_is_not_valid_is_unauthorized(facts: dict[str, Any]) -> None:
    keys = Keys(**facts)
    with pytest.raises(UnauthorizedError):
        decide(keys, keys.made.secret)


def test_an_unknown_key_and_a_platform_without_keys_are_unauthorized() -> None:
    for keys in (Keys(), None):
        with pytest.raises(UnauthorizedError):
            decide(keys, new_key().secret)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"project": "captions"}, "the project 'captions'"),
        ({"models": ("qwen/qwen3-8b",)}, "its models"),
        ({"budget": DoorBudget("key", "k", nano_per_day=1)}, "a budget of its own"),
        ({"caller": "batch"}, "the platform's own batch"),
    ],
)
def test_a_key_with_limits_is_told_why(facts: dict[str, Any], words: str) -> None:
    """Red if a key could pass its limits by a job, which is charged to the whole team."""
    keys = Keys(**facts)
    answer = decide(keys, keys.made.secret)
    assert answer["policyDocument"]["Statement"][0]["Effect"] == "Deny"
    assert words in answer["context"]["reason"]


def test_a_key_that_the_file_limits_is_told_why() -> None:
    """Red if `frontDoor.budgets` could limit a key at the door, and not its jobs."""
    keys = Keys()
    answer = decide(keys, keys.made.secret, "another", keys.made.id)
    assert answer["policyDocument"]["Statement"][0]["Effect"] == "Deny"
    assert "a budget of its own" in answer["context"]["reason"]
    assert decide(keys, keys.made.secret, "another")["policyDocument"]["Statement"][0]["Effect"] == "Allow"


def test_a_caller_cannot_name_a_team_itself() -> None:
    """What API Gateway has from the authorizer counts, and a principal has the team of the configuration."""
    context = {"principal": SEARCH, "team": "adverts"}
    known = caller_of(APIGatewayProxyEvent({"requestContext": {"authorizer": context}}), PLATFORM)
    assert known.team.name == "search"
    with pytest.raises(ApiError):
        caller_of(APIGatewayProxyEvent({"headers": {"team": "search", "key": "k"}}), PLATFORM)
