"""An OpenAI endpoint on loopback that does as it is told, wrong things above all."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Body = dict[str, Any]
#: Answers a request: its number among all, from 0, its own number among those of its line, and its body.
Behaviour = Callable[["Asked"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request."""

    request: web.Request
    body: Body
    number: int
    attempt: int

    @property
    def prompt(self) -> Any:
        return self.body["messages"][0]["content"]


def answer(asked: Asked) -> Body:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": f"to {asked.prompt}"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    }


async def well(asked: Asked) -> web.StreamResponse:
    return web.json_response(answer(asked), headers={"x-request-id": f"req-{asked.number}"})


def after(seconds: float, behaviour: Behaviour = well) -> Behaviour:
    async def late(asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await behaviour(asked)

    return late


@dataclass
class Gate:
    """Answers the first requests at once, and the others when it is open: until then nothing changes."""

    first: int
    behaviour: Behaviour = well
    _is_open: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, asked: Asked) -> web.StreamResponse:
        while asked.number >= self.first and not self._is_open.is_set():
            await asyncio.sleep(0.02)
        return await self.behaviour(asked)

    def open(self) -> None:
        self._is_open.set()


def status(code: int, body: Body | None = None, **headers: str) -> Behaviour:
    async def refuse(asked: Asked) -> web.StreamResponse:
        words = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body or {"error": {"message": "no"}}, status=code, headers=words)

    return refuse


async def reset(asked: Asked) -> web.StreamResponse:
    assert asked.request.transport is not None
    asked.request.transport.abort()
    return web.Response()


async def truncated(asked: Asked) -> web.StreamResponse:
    return web.Response(text=json.dumps(answer(asked))[:-9], content_type="application/json")


async def drip(asked: Asked) -> web.StreamResponse:
    """Send a byte now and then, for ever."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(asked.request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.05)


@dataclass
class FakeEndpoint:
    """Serves `behaviour`; a context manager."""

    behaviour: Behaviour = well
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by their `Idempotency-Key`, and answers that were handed out whole."""
    bodies: dict[str, Body] = field(default_factory=dict)
    in_flight: int = 0
    max_in_flight: int = 0
    models: list[str] | None = field(default_factory=list)
    """What it lists: models with a worker. None for an answer without a list."""
    listed: int = 0
    """How often it was asked for the list."""

    def __enter__(self) -> FakeEndpoint:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def begin_anew(self) -> None:
        self.behaviour = well
        self.asked.clear()
        self.bodies.clear()
        self.max_in_flight = 0

    @property
    def number(self) -> int:
        return self.asked.total()

    async def _start(self) -> None:
        application = web.Application(client_max_size=2**30)
        application.router.add_post("/v1/{path:.*}", self._serve)
        application.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.url = f"http://127.0.0.1:{port}"

    async def _list(self, _: web.Request) -> web.StreamResponse:
        self.listed += 1
        if self.models is None:
            return web.Response(status=503, text="<html>no target</html>")
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.models]})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body, key = await request.json(), request.headers["Idempotency-Key"]
        asked = Asked(request, body, self.number, self.asked[key])
        self.asked[key] += 1
        self.bodies[key] = body
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self.behaviour(asked)
        finally:
            self.in_flight -= 1
