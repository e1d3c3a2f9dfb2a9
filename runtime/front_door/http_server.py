"""Answers Envoy over a Unix socket: decisions, the list of models, readiness and metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final, cast

import httptools

from front_door.asked_request import RefusedError
from front_door.door_metrics import DoorMetrics
from front_door.policy import MODELS_PATH, Headers, Policy
from front_door.refusals import DoorRefusal
from inference_contracts import door_headers

_JSON: Final = "application/json"
_FAULT: Final = DoorRefusal(
    503, "internal_error", "The front door failed to decide. Ask again.", retry_after=1
)


class HttpConnection(asyncio.Protocol):
    """A connection of Envoy, with one request after the other."""

    def __init__(self, policy: Policy, metrics: DoorMetrics, tasks: set[asyncio.Task[None]]) -> None:
        self._policy, self._metrics, self._tasks = policy, metrics, tasks
        self._parser = httptools.HttpRequestParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._url = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def on_url(self, url: bytes) -> None:
        """Take a part of the path."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        """Answer."""
        headers, self._headers = self._headers, {}
        path = self._url.partition(b"?")[0].decode("latin-1")
        self._url = b""
        task = asyncio.get_running_loop().create_task(self._answer(path, headers))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        if path.startswith(door_headers.DECIDE):
            try:
                decided = await self._policy.decide(path[len(door_headers.DECIDE) :], headers)
            except RefusedError as error:
                self._refuse(error.refusal)
            except Exception:
                self._refuse(_FAULT)
                raise
            else:
                self._write(200, decided, b"")
        elif path == door_headers.METRICS_PATH:
            self._write(200, {"content-type": "text/plain; version=0.0.4"}, self._metrics.text())
        elif path == door_headers.READY_PATH:
            self._write(200, {}, b"")
        elif path == MODELS_PATH or path.startswith(f"{MODELS_PATH}/"):
            self._list_models(path[len(MODELS_PATH) + 1 :], headers)
        else:
            self._refuse(DoorRefusal(404, "unknown_path", f"{path[:200]}: not a path of this API."))

    def _list_models(self, name: str, headers: Mapping[bytes, bytes]) -> None:
        """Answer with the models of the caller whom the decision has named."""
        caller = self._policy.known.callers.again(headers)
        models = [
            {
                "id": model.name,
                "object": "model",
                "created": 0,
                "owned_by": self._policy.known.configuration.platform,
            }
            for model in self._policy.visible_models(caller)
        ]
        if not name:
            self._write(200, {"content-type": _JSON}, json.dumps({"object": "list", "data": models}).encode())
            return
        found = next((model for model in models if model["id"] == name), None)
        if found is None:
            self._refuse(DoorRefusal(404, "model_not_found", f"The model {name[:200]!r} does not exist."))
        else:
            self._write(200, {"content-type": _JSON}, json.dumps(found).encode())

    def _refuse(self, refusal: DoorRefusal) -> None:
        headers = {"content-type": _JSON}
        if refusal.retry_after is not None:
            headers["retry-after"] = str(refusal.retry_after)
        self._write(refusal.status, headers, refusal.body())

    def _write(self, status: int, headers: Headers, body: bytes) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} -\r\n{lines}content-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
