"""Answers Envoy over a Unix socket: decisions, the list of models, readiness and metrics."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

import httptools

from front_door.asked_request import RefusedError
from front_door.door_metrics import DoorMetrics
from front_door.open_requests import EnvoyLink
from front_door.policy import MODELS_PATH, Headers, Policy
from front_door.refusals import DoorRefusal
from inference_contracts import door_headers

_JSON: Final = "application/json"
_FAULT: Final = DoorRefusal(
    503, "internal_error", "The front door failed to decide. Ask again.", retry_after=1
)


@dataclass(slots=True)
class Pages:
    """What the policy answers besides decisions."""

    metrics: DoorMetrics
    is_ready: Callable[[], bool]
    """Whether requests can be decided: keys are known and the store has answered."""
    tasks: set[asyncio.Task[None]]
    """Answers that are being made."""


class HttpConnection(asyncio.Protocol):
    """A connection of Envoy, with one request after the other.

    policy: None at the address for Prometheus, where there is nothing to decide.
    """

    def __init__(self, policy: Policy | None, pages: Pages) -> None:
        self._policy, self._pages = policy, pages
        self._parser = httptools.HttpRequestParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._url = b""
        self._link = EnvoyLink()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- the reason does not matter
        """Note that Envoy has closed it."""
        self._link.is_open = False

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
        if self._policy and path.startswith(door_headers.DECIDE):
            decided = self._decide(self._policy, path[len(door_headers.DECIDE) :], headers)
            task = asyncio.get_running_loop().create_task(decided)
            self._pages.tasks.add(task)
            task.add_done_callback(self._pages.tasks.discard)
        elif path == door_headers.METRICS_PATH:
            self._write(200, {"content-type": "text/plain; version=0.0.4"}, self._pages.metrics.text())
        elif path == door_headers.READY_PATH:
            self._write(200 if self._pages.is_ready() else 503, {}, b"")
        elif self._policy and (path == MODELS_PATH or path.startswith(f"{MODELS_PATH}/")):
            self._list_models(self._policy, path[len(MODELS_PATH) + 1 :], headers)
        else:
            self._refuse(DoorRefusal(404, "unknown_path", f"{path[:200]}: not a path of this API."))

    async def _decide(self, policy: Policy, path: str, headers: Mapping[bytes, bytes]) -> None:
        started = time.perf_counter()
        try:
            decided = await policy.decide(path, headers, self._link)
        except RefusedError as error:
            self._refuse(error.refusal)
        except Exception as error:  # noqa: BLE001 -- whatever it is, Envoy waits for an answer
            event = {"event": "decision failed", "reason": repr(error), "trace": traceback.format_exc()}
            print(json.dumps(event), file=sys.stderr, flush=True)
            self._pages.metrics.answered(_FAULT.status)
            self._refuse(_FAULT)
        else:
            self._write(200, decided, b"")
        self._pages.metrics.took(time.perf_counter() - started)

    def _list_models(self, policy: Policy, name: str, headers: Mapping[bytes, bytes]) -> None:
        """Answer with the models of the caller whom the decision has named."""
        caller = policy.known.callers.again(headers)
        models = [
            {
                "id": model.name,
                "object": "model",
                "created": 0,
                "owned_by": policy.known.configuration.platform,
            }
            for model in policy.visible_models(caller)
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
        self._write(refusal.status, refusal.headers(), refusal.body())

    def _write(self, status: int, headers: Headers, body: bytes) -> None:
        if self._transport.is_closing():  # the caller has gone, and uvloop raises an error for a closed one
            return
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} -\r\n{lines}content-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
