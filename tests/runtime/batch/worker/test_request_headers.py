"""Each request has the headers that mark it as one of batch, and keeps its own."""

from __future__ import annotations

import asyncio

from aiohttp import web

from batch.worker.model_endpoint import ModelEndpoint, ModelRequest
from tests.runtime.batch.worker.fake_endpoint import Asked, FakeEndpoint, well

REQUEST = ModelRequest(b'{"messages": []}', "key-of-the-line")


def test_headers_are_sent_and_replace_none_of_the_worker_s() -> None:
    seen: list[dict[str, str]] = []

    async def record(asked: Asked) -> web.StreamResponse:
        seen.append(dict(asked.request.headers))
        return await well(asked)

    async def ask(url: str) -> None:
        marks = {"x-class": "batch", "Idempotency-Key": "another"}
        async with ModelEndpoint(url, connect_seconds=5, headers=marks) as endpoint:
            await endpoint.ask("/v1/chat/completions", REQUEST, seconds=5)

    with FakeEndpoint(behaviour=record) as endpoint:
        asyncio.run(ask(endpoint.url))
    assert seen[0]["x-class"] == "batch"
    assert seen[0]["Idempotency-Key"] == REQUEST.idempotency_key
