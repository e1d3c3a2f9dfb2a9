"""Scripted images: valid files that follow from prompt and seed, and refusals as vllm-omni's."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession, web

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.replay.trace_replay import ReplayResult, replay_async
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import ImageRequests, Workload
from inference_local.serving.direct.scripted_images import (
    ImageRequestError,
    read_image_request,
    scripted_png,
)
from inference_local.serving.direct.scripted_role import ScriptedRole
from inference_local.serving.direct.scripted_server import ScriptedServer
from inference_local.serving.direct.worker_balancer import WorkerBalancer
from inference_local.serving.local_target import LocalTarget
from tests.local.serving.test_direct import SETTINGS, serving

IMAGES = replace(SETTINGS, most_pixels=64 * 32)
_ASKED = {"model": "m", "prompt": "a cup", "size": "64x32", "seed": 3}


def pixels(file: bytes) -> tuple[int, int, bytes]:
    """Return width, height and the bytes of a PNG file's rows, each with its filter (PNG, section 5)."""
    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, rest = {}, file[8:]
    while rest:
        size = struct.unpack(">I", rest[:4])[0]
        kind, content, checksum = rest[4:8], rest[8 : 8 + size], rest[8 + size : 12 + size]
        assert struct.unpack(">I", checksum)[0] == zlib.crc32(kind + content)
        chunks[kind], rest = content, rest[12 + size :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">II5B", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    return width, height, zlib.decompress(chunks[b"IDAT"])


def test_an_image_has_the_size_and_follows_from_the_request() -> None:
    width, height, rows = pixels(scripted_png(64, 32, "a cup", 3, 0))
    assert (width, height, len(rows)) == (64, 32, 32 * (1 + 64 * 3))
    assert len({rows[row * 193 + 1 :][:192] for row in range(32)}) == 8, "bands"
    assert scripted_png(64, 32, "a cup", 3, 0) == scripted_png(64, 32, "a cup", 3, 0)
    others = [("a cat", 3, 0), ("a cup", 4, 0), ("a cup", 3, 1), ("a cup", None, 0)]
    assert len({scripted_png(64, 32, *each) for each in [("a cup", 3, 0), *others]}) == 5
    assert len(scripted_png(1024, 1024, "a cup", 3, 0)) < 20_000


def asked_of_server(body: Any) -> tuple[int, Any, str]:
    """Send a request to a scripted server, and return status, answer and its metrics."""

    async def run() -> tuple[int, Any, str]:
        application = ScriptedServer(IMAGES).application()
        async with serving(web.AppRunner(application)) as address, ClientSession() as session:
            async with session.post(f"http://{address}/v1/images/generations", json=body) as answer:
                status, content = answer.status, await answer.json()
            async with session.get(f"http://{address}/health") as health:
                assert health.status == 200
            async with session.get(f"http://{address}/v1/models") as models:
                assert (await models.json())["data"][0]["id"] == "m"
            async with session.post(f"http://{address}/v1/chat/completions", json={}) as chat:
                assert chat.status == 404, "a model for images has no chat"
            async with session.get(f"http://{address}/metrics") as page:
                return status, content, await page.text()

    return asyncio.run(run())


def test_the_server_answers_with_as_many_images_as_asked() -> None:
    status, answer, metrics = asked_of_server({**_ASKED, "n": 2})
    assert status == 200
    assert (answer["size"], answer["output_format"]) == ("64x32", "png")
    files = [base64.b64decode(each["b64_json"]) for each in answer["data"]]
    assert files == [scripted_png(64, 32, "a cup", 3, number) for number in range(2)]
    assert "x:n 1\n" in metrics


@pytest.mark.parametrize(
    ("change", "param", "message"),
    [
        ({"n": 11}, "body.n", "Input should be less than or equal to 10"),
        ({"n": 0}, "body.n", "Input should be greater than or equal to 1"),
        ({"prompt": None}, "body.prompt", "Input should be a valid string"),
        ({"size": "large"}, "body.size", "size must be in format 'WIDTHxHEIGHT' (e.g., '1024x1024')"),
        ({"size": "1x2x3"}, None, "Invalid size format: '1x2x3'. Expected format: 'WIDTHxHEIGHT'"),
        ({"size": "axb"}, None, "Invalid size format: 'axb'. Width and height must be integers."),
        ({"size": "0x9"}, None, "Invalid size: 0x9. Width and height must be positive integers."),
        (
            {"size": "64x33"},
            None,
            "Requested image size 64x33 exceeds the maximum allowed size of 2048 pixels.",
        ),
        ({"response_format": "url"}, "body.response_format", "Only 'b64_json' or 'file' response format"),
        ({"response_format": "file"}, None, "this scripted server makes only PNG in b64_json"),
        ({"output_format": "jpeg"}, None, "this scripted server makes only PNG in b64_json"),
        ({"num_inference_steps": 201}, "body.num_inference_steps", "less than or equal to 200"),
        ({"model": "x"}, None, "Model mismatch: request specifies 'x' but server is running 'm'."),
    ],
)
def test_a_wrong_request_is_refused_as_by_vllm_omni(
    change: dict[str, Any], param: str | None, message: str
) -> None:
    content = json.dumps({**_ASKED, **change}).encode()
    with pytest.raises(ImageRequestError) as refused:
        read_image_request(content, model="m", most_pixels=64 * 32)
    error = refused.value.body["error"]
    assert (error["type"], error["code"], error["param"]) == ("Bad Request", 400, param)
    assert message in error["message"]


def test_a_refusal_has_status_400() -> None:
    status, answer, _ = asked_of_server({**_ASKED, "n": 11, "size": "large"})
    assert status == 400
    assert answer["error"]["message"].startswith("2 validation errors:\n  body.n: ")


def test_a_model_that_makes_images_is_scripted() -> None:
    blueprint = load_blueprint("image-generation").blueprint
    [deployment] = LocalTarget(blueprint).render(build_plan(blueprint).models[0])
    [role] = deployment.workers
    assert isinstance(deployment.frontend, WorkerBalancer)
    assert isinstance(role, ScriptedRole)
    assert (role.state, role.most_pixels) == ("stubbed", 1024 * 1024)
    assert "no model runs" in role.detail
    assert "bands of colours" in role.answers


def test_a_replay_asks_for_images() -> None:
    images = ImageRequests(per_request=2, size="64x32", steps=9)
    workload = Workload(images=images, peak_requests_per_second=4)

    async def run() -> ReplayResult:
        async with serving(web.AppRunner(ScriptedServer(IMAGES).application())) as address:
            return await replay_async(f"http://{address}", "m", workload, 512, seconds=1.0)

    result = asyncio.run(run())
    assert result.outcomes
    assert result.failure_reasons == {}
    assert {outcome.images for outcome in result.outcomes} == {2}
    assert "no token counts" not in " ".join(result.warnings)
