"""A stand-in for llm-d's router: Envoy with the endpoint picker.

A program: ``python -m inference_local.serving.llm_d.picker_stand_in WORKERS --port N``.
The filter of requests starts it. The workers are ``{"decode": ["HOST:PORT", …], "prefill": […]}`` as JSON.
Llm-d publishes its own picker as a container image. This one chooses less well and forwards alike:

- A request goes to the next decode worker that is ready. With prefill workers, the next ready one of them is
  named in the header that the sidecar reads. The real picker looks at caches and queues, and sends short
  prompts to no prefill worker.
- As with the Envoy of the chart ``llm-d-model``, only ``/v1/`` is reachable, and a caller cannot choose a
  worker. If no worker is ready, the answer is a 503, as from the picker
  (``pkg/epp/requestcontrol/admission.go`` of llm-d/llm-d-router).
- A worker is ready while its ``/health`` answers. On a cluster, the picker learns that from Kubernetes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from aiohttp import ClientError, ClientSession, web

from inference_local.serving.http_forwarding import (
    Header,
    application,
    carry,
    forward,
    forwarding_session,
)
from inference_local.serving.llm_d.sidecar_stand_in import PREFILL_HEADER
from inference_local.serving.ready_workers import ReadyWorkers, listed_workers

_LOOPBACK = "127.0.0.1"
#: Headers that name an address; the chart's Envoy removes the same ones from requests of callers.
OF_THE_PICKER = (
    "x-gateway-destination-endpoint",
    "x-gateway-destination-endpoint-subset",
    PREFILL_HEADER,
    "x-encoder-hosts-ports",
    "x-data-parallel-host-port",
    "x-kv-cache-source-host-port",
)


class Picker:
    """Chooses the workers of a request and forwards it.

    decode: Workers that write answers.
    prefill: Workers that compute prompts for them. None if the decode workers compute their own.
    session: For requests to the workers.
    """

    def __init__(self, decode: ReadyWorkers, prefill: ReadyWorkers | None, session: ClientSession) -> None:
        self._decode = decode
        self._prefill = prefill
        self._session = session

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of a client."""
        if request.path == "/health":
            return web.json_response(self._health())
        if not request.path.startswith("/v1/"):
            return web.Response(status=404)
        worker = self._decode.next()
        prefill = self._prefill.next() if self._prefill else None
        if worker is None or (self._prefill and prefill is None):
            return _unavailable("no endpoints available")
        added: list[Header] = [(PREFILL_HEADER, f"{prefill[0]}:{prefill[1]}")] if prefill else []
        try:
            answer = await forward(
                request, await request.read(), worker, self._session, without=OF_THE_PICKER, added=added
            )
        except (ClientError, OSError) as error:
            return _unavailable(f"the worker does not answer: {error}")
        async with answer:
            return await carry(answer, request)

    def _health(self) -> dict[str, object]:
        """List the ready workers in the format of Dynamo's frontend. Envoy answers without a body."""
        roles = {"decode": self._decode.ready, "prefill": self._prefill.ready if self._prefill else set()}
        return listed_workers(roles)


def _unavailable(message: str) -> web.Response:
    return web.Response(status=503, text=message)


async def main(arguments: Sequence[str]) -> None:
    """Serve until the process ends.

    arguments: The workers as JSON, and the address to listen at.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("workers", type=json.loads)
    parser.add_argument("--host", default=_LOOPBACK)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args(arguments)
    workers = given.workers
    decode = ReadyWorkers(workers["decode"])
    prefill = ReadyWorkers(workers["prefill"]) if workers["prefill"] else None
    async with forwarding_session() as session:
        runner = application(Picker(decode, prefill, session).handle)
        await runner.setup()
        await web.TCPSite(runner, given.host, given.port).start()
        await asyncio.gather(*(role.poll(session) for role in (decode, prefill) if role))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
