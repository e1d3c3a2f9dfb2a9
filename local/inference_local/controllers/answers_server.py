"""An HTTP server on loopback with what the controllers ask: a cluster, PromQL, and what batch does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from inference_local.controllers.cluster_objects import Answer, ClusterObjects
from inference_local.controllers.metric_answers import MetricAnswers
from inference_local.controllers.run_clock import RunClock

#: Address of batch's requests in flight.
BATCH_PATH = "/batch-in-flight"
_QUERY = "/api/v1/query"


class AnswersServer:
    """The server. Use it as a context manager.

    cluster: Objects of the cluster, below ``/api`` and ``/apis``. None without Kubernetes.
    metrics: Answers to PromQL by the name of a controller, below ``/<name>/api/v1/query``.
    batch_in_flight: Returns batch's requests in flight: times of the shift's clock, and values.
    clock: The clock of the cluster.
    """

    def __init__(
        self,
        cluster: ClusterObjects | None,
        metrics: Mapping[str, MetricAnswers],
        batch_in_flight: Callable[[], list[tuple[float, float]]],
        clock: RunClock,
    ) -> None:
        self._cluster, self._metrics, self._batch = cluster, metrics, batch_in_flight
        self._server = _Server(("127.0.0.1", 0), _handler(self._answer, clock))
        self._thread = threading.Thread(target=self._server.serve_forever, name="answers", daemon=True)

    @property
    def address(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        address = urlsplit(target)
        if address.path == BATCH_PATH:
            return HTTPStatus.OK, self._batch()
        name, _, rest = address.path.strip("/").partition("/")
        if name in self._metrics and f"/{rest}".startswith(_QUERY):
            return HTTPStatus.OK, self._metrics[name].answer(f"/{rest}", _single(body.decode()))
        if self._cluster is None:
            return HTTPStatus.NOT_FOUND, {"message": f"nothing answers {address.path}"}
        answer: Answer = self._cluster.answer(
            method, address.path, _single(address.query), json.loads(body) if body else None
        )
        return answer


class _Server(ThreadingHTTPServer):
    """Says nothing if a controller that gave up does not take its answer. It asks again by itself."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


def _single(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}


def _handler(
    answer: Callable[[str, str, bytes], tuple[int, Any]], clock: RunClock
) -> type[BaseHTTPRequestHandler]:
    class AnswersHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = answer(self.command, self.path, body)
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_DELETE = _respond  # noqa: N815 - the names of http.server

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(clock.of(time.time() if timestamp is None else timestamp))

    return AnswersHandler
