"""A redrive asks through the front door with the key of the job's team."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from urllib3 import HTTPResponse

from inference_contracts.streaming_job import JobDoor
from streaming.redrive_targets import LetterModel, RedriveError
from tests.runtime.streaming.test_redrive import JOB, REQUEST

DOOR = JobDoor(model="streaming:shopper", team="ads", secret="arn")  # noqa: S106 - where the key is
BEHIND_DOOR = replace(JOB, endpoint=replace(JOB.endpoint, authentication="bearer", door=DOOR))


class Secrets:
    """Secrets Manager with one secret, whose values are read one after the other."""

    def __init__(self, *values: str) -> None:
        self.values = list(values)
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, str]:  # noqa: N803 - AWS's name
        self.asked.append(SecretId)
        return {"SecretString": self.values.pop(0)}


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
    secrets = Secrets('{"ads":"old","shop":"theirs"}', '{"ads":"new"}')
    model = LetterModel(BEHIND_DOOR, connections=1, secrets=secrets)
    door = Door(model, monkeypatch, "old")
    assert model(REQUEST, "s").text == "{}"
    assert model(REQUEST, "s").text == "{}"
    assert (secrets.asked, door.models) == (["arn"], ["streaming:shopper"] * 2)
    door.key = "new"
    assert model(REQUEST, "s").text == "{}"
    assert len(secrets.asked) == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{}", "the secret has no key of the team 'ads' yet"),
        ("[]", "the key for the front door cannot be read"),
        ('{"ads":"wrong"}', "the endpoint answers 401"),
    ],
)
def test_without_a_valid_key_the_redrive_says_so(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LetterModel(BEHIND_DOOR, connections=1, secrets=Secrets(value, value))
    Door(model, monkeypatch, "right")
    with pytest.raises(RedriveError, match=said):
        model(REQUEST, "s")
