"""Between a worker and the emulator: calls are refused, held on their way, or their answers withheld."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import ClientSession, TCPConnector, web

_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "te", "trailer"}


@dataclass(frozen=True)
class Call:
    """A call of an AWS client."""

    operation: str
    """Such as ``PUT`` for S3, ``SendTaskHeartbeat`` or ``ReceiveMessage`` for the others."""
    path: str
    headers: dict[str, str]
    request: web.Request
    number: int
    """How many of this operation were there before."""


Forward = Callable[[], Awaitable[web.Response]]
#: Answers a call, by forwarding it or not.
Hook = Callable[[Call, Forward], Awaitable[web.StreamResponse]]


async def forward_all(call: Call, forward: Forward) -> web.StreamResponse:
    return await forward()


class AwsProxy:
    """Forwards calls through `hook`; a context manager."""

    def __init__(self, target: str) -> None:
        self.hook: Hook = forward_all
        self.calls: Counter[str] = Counter()
        self.url = ""
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> AwsProxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def call(self, act: Callable[[], object]) -> None:
        """Run something on the proxy's own loop, such as setting an event that a hook waits for."""
        self._loop.call_soon_threadsafe(act)

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": self.url, "AWS_ENDPOINT_URL_S3": self.url}

    async def _start(self) -> None:
        self._session = ClientSession(connector=TCPConnector(limit=0), auto_decompress=False)
        application = web.Application(client_max_size=2**30)
        application.router.add_route("*", "/{path:.*}", self._serve)
        # What it forwards is not ended with the connection that asked for it: AWS would go on too.
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.url = f"http://127.0.0.1:{port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        operation = request.headers.get("X-Amz-Target", request.method).rpartition(".")[2]
        call = Call(operation, request.path, dict(request.headers), request, self.calls[operation])
        self.calls[operation] += 1

        async def forward() -> web.Response:
            headers = {name: value for name, value in request.headers.items() if _passes(name)}
            async with self._session.request(
                request.method, self._target + request.raw_path, data=body, headers=headers
            ) as answer:
                content = await answer.read()
                passed = {name: value for name, value in answer.headers.items() if _passes(name)}
                return web.Response(status=answer.status, body=content, headers=passed)

        return await self.hook(call, forward)


def _passes(header: str) -> bool:
    return header.lower() not in _HOP_BY_HOP


def slow_down() -> web.Response:
    """Return what S3 says when it is asked too often."""
    text = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
    return web.Response(status=503, text=text, content_type="application/xml")


def refused(code: str) -> web.Response:
    """Return an error of SQS or Step Functions."""
    body = {"__type": code, "message": "refused"}
    return web.json_response(body, status=400, content_type="application/x-amz-json-1.0")
