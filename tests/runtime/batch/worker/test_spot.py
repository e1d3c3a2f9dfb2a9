"""The warning of a spot instance, as its metadata give it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from batch.worker import worker_loop


@asynccontextmanager
async def metadata(warned_after: int) -> AsyncIterator[str]:
    """Serve the metadata: none but with a token, and a warning after a number of questions."""
    asked = 0

    async def token(request: web.Request) -> web.Response:
        assert request.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        return web.Response(text="token")

    async def action(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if request.headers.get("X-aws-ec2-metadata-token") != "token":
            return web.Response(status=401)
        if asked == 1:
            return web.Response(status=500)
        return web.Response(status=200 if asked > warned_after else 404)

    application = web.Application()
    application.router.add_put("/latest/api/token", token)
    application.router.add_get("/latest/meta-data/spot/instance-action", action)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    assert asked == warned_after + 1
    await runner.cleanup()


def test_it_waits_for_the_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_loop, "_SPOT_PERIOD_SECONDS", 0)

    async def go() -> None:
        async with metadata(warned_after=3) as address:
            monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
            await asyncio.wait_for(worker_loop.wait_for_warning(), 30)

    asyncio.run(go())


def test_an_instance_without_metadata_is_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker_loop, "_SPOT_PERIOD_SECONDS", 0)
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")

    async def go() -> None:
        waiting = asyncio.create_task(worker_loop.wait_for_warning())
        said = ""
        while said.count("spot_warning_unknown") < 3:
            await asyncio.sleep(0)
            said += capsys.readouterr().out
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(go())
