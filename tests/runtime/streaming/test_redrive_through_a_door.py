"""A redrive asks through the front door with the key of the job's team."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from urllib3 import HTTPResponse

from inference_contracts.platform_key_reader import LEAST_SECONDS, PlatformKeys
from inference_contracts.streaming_job import JobDoor
from streaming.redrive_targets import LetterModel, RedriveError
from tests.runtime.streaming.test_redrive import JOB, REQUEST

DOOR = JobDoor(model="streaming:shopper", team="ads", secret="arn")  # noqa: S106 - where the key is
BEHIND_DOOR = replace(JOB, endpoint=replace(JOB.endpoint, authentication="bearer", door=DOOR))


class Secrets:
    """Secrets Manager with one secret, and the clock of who reads it."""

    def __init__(self, value: str) -> None:
        self.value, self.reads, self.now = value, 0, 0.0

    def get_secret_value(self, **values: Any) -> Any:
        assert values == {"SecretId": DOOR.secret}
        self.reads += 1
        return {"SecretString": self.value}

    def keys(self) -> PlatformKeys:
        return PlatformKeys(self, DOOR.secret, lambda: self.now)


class Door:
    """Answers for a front door that takes one key."""

    def __init__(self, model: LetterModel, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
        self.key, self.model = key, model
        self.models: list[str] = []
        monkeypatch.setattr(model, "_send", self.send)

    def send(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> HTTPResponse:
        self.models.append(body["model"])
        if headers["Authorization"] != f"Bearer {self.key}":
            return HTTPResponse(b'{"error":{"code":"invalid_api_key"}}', status=401)
        answer = {"choices": [{"message": {"content": "{}"}}]}
        return HTTPResponse(json.dumps(answer).encode(), status=200)


def test_behind_a_door_letters_are_asked_with_the_key_of_the_team(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Secrets('{"ads":"old","shop":"theirs"}')
    model = LetterModel(BEHIND_DOOR, connections=1, keys=secrets.keys())
    door = Door(model, monkeypatch, "old")
    assert [model(REQUEST, "s").text, model(REQUEST, "s").text] == ["{}", "{}"]
    assert (secrets.reads, door.models) == (1, ["streaming:shopper"] * 2)
    door.key, secrets.value = "new", '{"ads":"new"}'
    secrets.now += LEAST_SECONDS
    assert model(REQUEST, "s").text == "{}"
    assert secrets.reads == 2


@pytest.mark.parametrize(
    ("value", "said"), [("{}", "got no key for team 'ads'"), ('{"ads":"wrong"}', "the endpoint answers 401")]
)
def test_without_a_valid_key_the_redrive_says_so(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LetterModel(BEHIND_DOOR, connections=1, keys=Secrets(value).keys())
    Door(model, monkeypatch, "right")
    with pytest.raises(RedriveError, match=said):
        model(REQUEST, "s")
