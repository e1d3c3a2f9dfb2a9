"""An endpoint that answers each request after the same time.

`python -m benchmarks.harness.batch.fast_endpoint 0.5` takes half a second.

Prints its address, and says at ``/statistics`` how many requests it got, and how long the answers took but
for the first and the last tenth of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import uvloop
from aiohttp import web

_ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "model",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "word " * 40}}
        ],
        "usage": {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100},
    }
).encode()


class FastEndpoint:
    """Answers after a time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._requests = 0
        self._answered: list[float] = []

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request."""
        self._requests += 1
        await request.read()
        await asyncio.sleep(self._seconds)
        self._answered.append(time.monotonic())
        return web.Response(body=_ANSWER, content_type="application/json")

    async def statistics(self, _: web.Request) -> web.Response:
        """Say what happened since the last time that this was asked."""
        tenth, times = len(self._answered) // 10, self._answered
        values = {"requests": self._requests, "middleSeconds": times[-tenth - 1] - times[tenth - 1]}
        self._requests, self._answered = 0, []
        return web.json_response(values)


async def _serve(seconds: float) -> None:
    endpoint, application = FastEndpoint(seconds), web.Application()
    application.router.add_post("/v1/chat/completions", endpoint.answer)
    application.router.add_get("/statistics", endpoint.statistics)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    port = runner.addresses[0][1]
    print(f"http://127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(float(sys.argv[1])))
