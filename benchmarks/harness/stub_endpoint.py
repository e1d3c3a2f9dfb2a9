"""An endpoint that answers each call after a fixed time, without work of its own."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from aiohttp import web

from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK

LATENCY_SECONDS = 0.3
_ANSWER = {
    "model": "stub",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": '{"intent": "a", "confidence": 1}'}}
        | {"finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 12},
}


@contextmanager
def stub_endpoint() -> Iterator[str]:
    """Run the endpoint in a process of its own, and yield its address.

    Below the address, ``/times`` has the times of all calls, and ``/count`` their number.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://{LOOPBACK}:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(ready: Connection) -> None:
    asyncio.run(_answer_calls(ready))


async def _answer_calls(ready: Connection) -> None:
    times: list[float] = []
    body = json.dumps(_ANSWER).encode()

    async def chat(request: web.Request) -> web.Response:
        times.append(time.monotonic())
        await request.read()
        await asyncio.sleep(LATENCY_SECONDS)
        return web.Response(body=body, content_type="application/json")

    async def arrivals(_: web.Request) -> web.Response:
        return web.json_response(times)

    async def count(_: web.Request) -> web.Response:
        return web.json_response(len(times))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/times", arrivals)
    app.router.add_get("/count", count)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    ready.send(runner.addresses[0][1])
    await asyncio.Event().wait()
