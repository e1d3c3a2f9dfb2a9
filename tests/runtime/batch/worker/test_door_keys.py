"""Requests through the front door have the key of their team, and follow a secret that changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aiohttp import web
from botocore.exceptions import EndpointConnectionError

from batch.contracts.request import JobDescription
from batch.worker.door_keys import DoorKeys
from batch.worker.image_loader import Images
from batch.worker.model_endpoint import (
    Answer,
    EndpointFault,
    Failure,
    ModelEndpoint,
    ModelRequest,
    Requests,
    _judge,
)
from inference_contracts.door_headers import BUDGET_SCOPE
from inference_contracts.platform_keys import LOOK_SECONDS, write_keys
from tests.runtime.batch.worker.fake_endpoint import Asked, FakeEndpoint, well
from tests.runtime.batch.worker.jobs import lines
from tests.runtime.batch.worker.turned_loop import turn

SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:batch"  # noqa: S105 - a name
CHAT = "/v1/chat/completions"


@dataclass
class Secrets:
    """Secrets Manager with one secret."""

    keys: Mapping[str, str]
    looks: int = 0
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    def get_secret_value(self, **values: str) -> Mapping[str, str]:
        self.looks += 1
        self.asked.append(values["SecretId"])
        if self.error:
            raise self.error
        return {"SecretString": write_keys(self.keys)}


@dataclass
class Clock:
    """A clock that is turned by hand."""

    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds


def test_each_team_s_requests_have_its_key_and_a_refused_key_is_read_again() -> None:
    seen: list[str] = []

    async def check(asked: Asked) -> web.StreamResponse:
        seen.append(asked.request.headers["Authorization"])
        return web.json_response({}, status=401) if seen[-1] == "Bearer old" else await well(asked)

    async def ask(url: str) -> list[Answer | Failure]:
        secrets, clock = Secrets({"ads": "old", "search": "its own"}), Clock()
        keys = DoorKeys(secrets, SECRET, clock.now)
        async with ModelEndpoint(url, connect_seconds=5, keys=keys) as endpoint:

            async def of(team: str) -> Answer | Failure:
                request = ModelRequest(lines_body(), f"key-{team}", team=team)
                return await endpoint.ask(CHAT, request, seconds=5)

            found = [await of("search"), await of("ads"), await of("new")]
            assert secrets.looks == 1
            secrets.keys = {"ads": "new", "search": "its own"}
            clock.seconds = 6
            return [*found, await of("ads"), await of("ads")]

    with FakeEndpoint(behaviour=check) as endpoint:
        search, refused, unknown, twice, again = asyncio.run(ask(endpoint.url))
    assert isinstance(search, Answer)
    assert isinstance(again, Answer)
    for failure in (refused, unknown, twice):  # it waits, and is not the line's fault
        assert isinstance(failure, Failure)
        assert failure.fault is EndpointFault.UNAVAILABLE
    assert seen == ["Bearer its own", "Bearer old", "Bearer old", "Bearer new"]


def lines_body() -> bytes:
    return json.dumps(lines(1)[0].body).encode()


def test_a_rotated_key_is_found_and_aws_is_asked_rarely() -> None:
    """Red if a rotated key is found too late, AWS is asked for each request, or a failure loses keys."""

    async def go() -> None:
        secrets = Secrets({"ads": "one"})
        keys = DoorKeys(secrets, SECRET, asyncio.get_running_loop().time)
        assert await asyncio.gather(*(keys.of("ads") for _ in range(9))) == ["one"] * 9
        assert (secrets.looks, secrets.asked[0]) == (1, SECRET)
        secrets.keys = {"ads": "two"}
        await keys.refused("one")  # too soon
        assert await keys.of("ads") == "one"
        await asyncio.sleep(6)
        await keys.refused("one")
        assert await keys.of("ads") == "two"
        secrets.keys, secrets.error = {"ads": "three"}, EndpointConnectionError(endpoint_url="https://sm")
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert await keys.of("ads") == "two"
        secrets.error = None
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert await keys.of("ads") == "three"
        assert secrets.looks == 4

    turn(go())


def test_through_the_door_the_model_has_batch_s_name() -> None:
    description = JobDescription("job", "ads", "qwen", CHAT, 0)

    async def made(model: str | None) -> dict[str, Any]:
        requests = Requests(description, cast("Images", None), model)
        request = await requests.make(lines(1)[0])
        assert request.team == "ads"
        body: dict[str, Any] = json.loads(request.body)
        return body

    assert asyncio.run(made("batch:qwen"))["model"] == "batch:qwen"
    assert asyncio.run(made(None))["model"] == "qwen"


@pytest.mark.parametrize(
    ("status", "code", "headers", "fault"),
    [
        (429, "rate_limit_exceeded", {"Retry-After": "3"}, EndpointFault.REFUSED),
        (429, "rate_limit_exceeded", {"Retry-After": "9", BUDGET_SCOPE: "key"}, EndpointFault.BUDGET),
        (429, "insufficient_quota", {"Retry-After": "99999", BUDGET_SCOPE: "team"}, EndpointFault.BUDGET),
        (429, "too_many_wrong_keys", {"Retry-After": "60"}, EndpointFault.REFUSED),
        (503, "budgets_unavailable", {"Retry-After": "2"}, EndpointFault.REFUSED),
        (503, "keys_unavailable", {"Retry-After": "5"}, EndpointFault.REFUSED),
        (503, "overloaded", {"Retry-After": "1"}, EndpointFault.REFUSED),
        (503, "model_unavailable", {"Retry-After": "2"}, EndpointFault.REFUSED),
        (503, "model_unavailable", {}, EndpointFault.LOST),
        (504, "model_timeout", {}, EndpointFault.BROKEN),
        (401, "invalid_api_key", {}, EndpointFault.UNAVAILABLE),
        (404, "model_not_found", {}, EndpointFault.UNAVAILABLE),
        (400, "context_length_exceeded", {}, None),
        (411, "length_required", {}, None),
        (413, "request_too_large", {}, None),
    ],
)
def test_what_the_door_says(
    status: int, code: str, headers: Mapping[str, str], fault: EndpointFault | None
) -> None:
    """Red if a line fails because of others, or is sent for ever because of itself."""
    body = json.dumps({"error": {"message": "no", "code": code}}).encode()
    found = _judge(status, headers, body, 0.01)
    assert (found.fault if isinstance(found, Failure) else None) is fault
