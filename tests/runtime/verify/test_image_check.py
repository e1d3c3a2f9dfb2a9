"""A model that makes images is asked for images, never for a chat; each wrong answer is named."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession, web

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.completions.completion_client import RequestOutcome
from inference_blueprints.measure.completions.image_client import ImageClient
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.endpoint_checks import CheckedEndpoint, ask
from inference_blueprints.spec.types import ImageRequests
from inference_local.serving.direct.scripted_images import scripted_png
from tests.local.serving.test_direct import serving
from tests.runtime.measurement.standing_clock import StandingClock, standing_clock

MODEL = load_blueprint("image-generation").blueprint.spec.models[0]
IMAGES = ImageRequests(per_request=2, size="64x32", steps=9)
_PNG = base64.b64encode(scripted_png(64, 32, "a", 1, 0)).decode()
_PAGE = base64.b64encode(b"<html>").decode()


def answering(
    body: object, status: int, asked: list[Any], *, wait: Callable[[], Awaitable[None]] | None = None
) -> web.Application:
    """Return an endpoint that serves the model and always answers the same, perhaps after some time."""

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.path, await request.json()))
        if wait:
            await wait()
        return web.Response(status=status, text=json.dumps(body), content_type="application/json")

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL.name, "object": "model"}]})

    application = web.Application()
    application.router.add_get("/v1/models", models)
    application.router.add_post("/{path:.*}", answer)
    return application


def checked(body: object, status: int = 200) -> tuple[list[CheckResult], list[Any]]:
    """Return the results of the checks of an endpoint with this answer, and the requests it got."""
    asked: list[Any] = []

    async def run() -> list[CheckResult]:
        async with serving(web.AppRunner(answering(body, status, asked))) as address:
            endpoint = CheckedEndpoint("z-image/main", f"http://{address}", MODEL, 1, 60.0)
            return [each async for each in ask(endpoint)]

    return asyncio.run(run()), asked


def sent(body: object, status: int = 200) -> tuple[RequestOutcome, list[Any], list[int]]:
    """Return the outcome of a measured request, what the endpoint got, and how much of that at its begin."""
    asked: list[Any] = []
    begun: list[int] = []

    async def run(clock: StandingClock) -> RequestOutcome:
        application = answering(body, status, asked, wait=lambda: clock.sleep(1.0))
        async with serving(web.AppRunner(application)) as address, ClientSession() as session:
            client = ImageClient(
                session,
                f"http://{address}",
                MODEL.name,
                timeout_seconds=600,
                clock=clock,
                images=IMAGES,
            )
            return await client.complete("a cup", 1, 0.0, on_first_token=lambda: begun.append(len(asked)))

    with standing_clock() as clock:
        return asyncio.run(run(clock)), asked, begun


def of_images(*files: object) -> object:
    return {"created": 1, "data": [{"b64_json": file} for file in files]}


def test_one_request_is_enough() -> None:
    results, asked = checked(of_images(_PNG))
    assert [(each.check, each.severity) for each in results] == [("models", "ok"), ("images", "ok")]
    assert results[1].message == "z-image/main: 1 PNG of 1024x1024 in 9 steps"
    [(path, body)] = asked
    assert path == "/v1/images/generations"
    assert (body["model"], body["n"], body["size"]) == (MODEL.name, 1, "1024x1024")
    assert body["num_inference_steps"] == 9


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (of_images(), 200, "0 images instead of 1"),
        (of_images(_PNG, _PNG), 200, "2 images instead of 1"),
        (of_images(_PAGE), 200, "image 0 is not a PNG file"),
        (of_images("*"), 200, "the answer is not one of /v1/images/generations"),
        (of_images(None), 200, "the answer is not one of /v1/images/generations"),
        ({"data": None}, 200, "the answer is not one of /v1/images/generations"),
        ({"error": {"message": "out of memory"}}, 500, "HTTP 500"),
    ],
)
def test_a_wrong_answer_is_named(body: object, status: int, reason: str) -> None:
    results, _ = checked(body, status)
    assert (results[1].check, results[1].severity) == ("images", "error")
    assert reason in results[1].message


def test_a_measured_request_counts_its_images() -> None:
    outcome, asked, begun = sent(of_images(_PNG, _PNG))
    assert (outcome.failure, outcome.images, outcome.usage) == (None, 2, None)
    assert outcome.end_to_end_ms is not None
    assert outcome.time_to_first_token_ms is None
    assert begun == [1], "the server had the request and had not answered it"
    assert asked[0][1] == {
        "model": MODEL.name,
        "prompt": "a cup",
        "n": 2,
        "size": "64x32",
        "num_inference_steps": 9,
    }


@pytest.mark.parametrize(
    ("body", "status", "failure"),
    [
        (of_images(_PNG), 200, "wrong number of images"),
        (of_images(_PNG, _PAGE), 200, "malformed stream"),
        ({}, 503, "HTTP 503"),
    ],
)
def test_a_measured_request_without_its_images_fails(body: object, status: int, failure: str) -> None:
    outcome, _, _ = sent(body, status)
    assert outcome.failure == failure
    assert outcome.end_to_end_ms is None
