"""An OpenAI endpoint in this process that misbehaves when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TEMPLATE_TOKENS = 7


@dataclass
class FakeEndpoint:
    """Answers with as many one-word pieces as asked for; `faults` says what becomes of each request in turn.

    The first request of a replay measures the chat template, so `faults` counts from the second. One that
    `remembers` finds a prompt in its cache when it was asked before. `structured` is its answer to requests
    with a JSON schema, which do not count, and why the answer ends.
    """

    faults: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    first_token_seconds: float = 0.0
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits before a slow first token, and what happens when a request hangs."""
    on_hang: Callable[[], object] = bool
    cached_tokens: int | None = 3
    remembers: bool = False
    served: list[str] | None = field(default_factory=lambda: ["qwen"])
    headers: dict[str, str] = field(default_factory=dict)
    structured: tuple[str, str] = ('{"kind": "lake", "deep": true}', "stop")
    base_url: str = ""
    runner: web.AppRunner | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def models(self, _: web.Request) -> web.Response:
        if self.served is None:
            return web.Response(status=503, text="no frontend")
        models = [{"id": name, "object": "model"} for name in self.served]
        return web.json_response({"object": "list", "data": models}, headers=self.headers)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if "response_format" in body:
            text, ending = self.structured
            message = {"role": "assistant", "content": text}
            return web.json_response({"choices": [{"message": message, "finish_reason": ending}]})
        known = body["messages"] in [earlier["messages"] for earlier in self.bodies]
        self.bodies.append(body)
        number = len(self.bodies) - 2
        fault = self.faults[number] if 0 <= number < len(self.faults) else ""
        if fault == "http 500":
            return web.Response(status=500, text="the worker is gone")
        if fault == "hang":
            self.on_hang()
            await self.stopping.wait()
            return web.Response(status=503)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if fault == "slow":
            await self.wait(self.first_token_seconds)
        words = len(body["messages"][0]["content"].split())
        cached = (words if known else 0) if self.remembers else self.cached_tokens
        await self._stream(response, request, body, fault, cached)
        return response

    async def _stream(
        self,
        response: web.StreamResponse,
        request: web.Request,
        body: dict[str, Any],
        fault: str,
        cached: int | None,
    ) -> None:
        prompt = body["messages"][0]["content"]
        await response.write(b": keep-alive\n\n")
        await _event(response, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for position in range(0 if fault == "no tokens" else body["max_tokens"]):
            if position == 1 and fault == "reset":
                assert request.transport is not None
                request.transport.abort()
                return
            if position == 1 and fault == "malformed":
                await response.write(b"data: {not json\n\n")
            if position == 1 and fault == "wrong shape":
                await _event(response, {"choices": [{"text": "not a chat"}]})
            if position == 1 and fault == "error event":
                await response.write(b"event: error\n: no worker left\n\n")
            if position == 1 and fault == "error object":
                await _event(response, {"error": {"message": "out of blocks"}})
            await _event(response, {"choices": [{"delta": {"content": "word "}}]})
        if fault != "no usage":
            usage = {
                "prompt_tokens": len(prompt.split()) + TEMPLATE_TOKENS,
                "completion_tokens": 0 if fault == "miscounted" else body["max_tokens"],
                "prompt_tokens_details": {"cached_tokens": cached},
            }
            await _event(response, {"choices": [], "usage": usage})
        if fault != "no done":
            await response.write(b"data: [DONE]\n\n")

    async def stop(self) -> None:
        self.stopping.set()
        assert self.runner is not None, "it serves"
        await self.runner.cleanup()


async def _event(response: web.StreamResponse, value: dict[str, Any]) -> None:
    await response.write(f"data: {json.dumps(value)}\n\n".encode())


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[FakeEndpoint]:
    """Serve on a port that the operating system chooses."""
    endpoint = FakeEndpoint(**settings)
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_get("/v1/models", endpoint.models)
    application.router.add_post("/v1/chat/completions", endpoint.completions)
    endpoint.runner = web.AppRunner(application, shutdown_timeout=1.0)
    await endpoint.runner.setup()
    site = web.TCPSite(endpoint.runner, "127.0.0.1", 0)
    await site.start()
    endpoint.base_url = f"http://127.0.0.1:{endpoint.runner.addresses[0][1]}"
    try:
        yield endpoint
    finally:
        await endpoint.stop()
