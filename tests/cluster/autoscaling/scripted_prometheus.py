"""Answers Prometheus' instant queries from scripted series. It stands in for Prometheus in this test only."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.cluster.autoscaling.branches import Script, value_at


class ScriptedPrometheus:
    """Values of scripts by query, from a time on; before it, each script's first value."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self._scripts = scripts
        self._begin: float | None = None
        self.address = ""

    def begin(self) -> float:
        """Start the scripts, and return the time: seconds since 1970."""
        self._begin = time.time()
        return self._begin

    def value(self, query: str) -> float | None:
        """Return a script's value at this time."""
        return value_at(self._scripts[query], 0.0 if self._begin is None else time.time() - self._begin)


@contextmanager
def serving(prometheus: ScriptedPrometheus) -> Iterator[None]:
    """Serve on loopback, at the address that the object has then."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            value = prometheus.value(query)
            samples = (
                [{"metric": {}, "value": [0, str(value)]}]
                if value is not None and math.isfinite(value)
                else []
            )
            data = {"resultType": "vector", "result": samples}
            body = json.dumps({"status": "success", "data": data}).encode()
            # A client whose time is over has left.
            with suppress(ConnectionError):
                self.send_response(503 if value is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    prometheus.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
