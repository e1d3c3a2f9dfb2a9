"""A stand-in for the load balancer in front of engines' own servers.

A separate program: ``python -m inference_local.serving.direct.balancer_stand_in PORT WORKERS
LEAVING``, with ``["HOST:PORT", …]`` as JSON, and the folder of `leaving_folder`. It does what the target
group of an Application Load Balancer does (Elastic Load Balancing, "Edit target group attributes for your
Application Load Balancer"):

- A request goes to the ready worker with the fewest requests in progress; among equals, to the one that was
  chosen longest ago.
- Only ``/v1/`` is reachable: the listener has no rule for other paths and answers 404.
- A worker that is deregistered gets no new requests, and those in progress go on.
- Without a ready worker the answer is a 503; if the worker does not answer, a 502.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from aiohttp import ClientError, ClientSession, web

from inference_local.serving.http_forwarding import (
    application,
    carry,
    forward,
    forwarding_session,
)
from inference_local.serving.ready_workers import Address, ReadyWorkers, listed_workers

_LOOPBACK = "127.0.0.1"


class LeastRequests:
    """Chooses the ready worker with the fewest requests in progress.

    workers: All workers.
    """

    def __init__(self, workers: ReadyWorkers) -> None:
        self._workers = workers
        self._open: Counter[Address] = Counter()
        self._chosen: Counter[Address] = Counter()
        self._turns = count(1)

    @contextmanager
    def chosen(self) -> Iterator[Address | None]:
        """Yield the worker of a request, which is in progress in the block; None if no worker is ready."""
        if not self._workers.ready:
            yield None
            return
        address = min(sorted(self._workers.ready), key=lambda each: (self._open[each], self._chosen[each]))
        self._open[address] += 1
        self._chosen[address] = next(self._turns)
        try:
            yield address
        finally:
            self._open[address] -= 1


class Balancer:
    """Forwards requests to workers.

    session: For requests to them.
    """

    def __init__(self, workers: ReadyWorkers, session: ClientSession) -> None:
        self._workers = workers
        self._minimum = LeastRequests(workers)
        self._session = session

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of a client."""
        if request.path == "/health":
            return web.json_response(listed_workers({"worker": self._workers.ready}))
        if not request.path.startswith("/v1/"):
            return web.Response(status=404)
        body = await request.read()
        with self._minimum.chosen() as worker:
            if worker is None:
                return web.Response(status=503, text="no target is healthy")
            try:
                answer = await forward(request, body, worker, self._session)
            except (ClientError, OSError) as error:
                return web.Response(status=502, text=f"the worker does not answer: {error}")
            async with answer:
                return await carry(answer, request)


async def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends.

    arguments: The port to listen on, the workers as JSON, and the folder of those that leave.
    """
    workers = ReadyWorkers(json.loads(arguments[1]), Path(arguments[2]))
    # llama-server closes a connection that was idle for 5 s (``CPPHTTPLIB_KEEPALIVE_TIMEOUT_SECOND``).
    async with forwarding_session(keeps_connections=False) as session:
        runner = application(Balancer(workers, session).handle)
        await runner.setup()
        await web.TCPSite(runner, _LOOPBACK, int(arguments[0])).start()
        await workers.poll(session)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
