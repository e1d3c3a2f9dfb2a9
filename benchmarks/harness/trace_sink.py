"""Receives traces: OTLP over HTTP, as Dynamo's processes and Envoy send it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Span:
    """A span that arrived."""

    service: str
    """The service that sent it."""
    name: str
    trace: str
    identity: str
    parent: str
    """`identity`, `parent`: Its number and that of its parent, in hexadecimal digits. A root has no
    parent."""
    start_ns: int
    end_ns: int
    """`start_ns`, `end_ns`: Unix times, in nanoseconds."""
    attributes: Mapping[str, str]
    """Its attributes that are texts."""


class TraceSink:
    """The spans that arrived at a port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._spans: list[Span] = []
        self._lock = threading.Lock()

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables with which a process of Dynamo sends its spans here, in place of the plan's.

        Dynamo's HTTP client uses the proxy of the plan.
        """
        return {
            "NO_PROXY": _HOST,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://{_HOST}:{self.port}/v1/traces",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        }

    def add(self, body: bytes) -> None:
        """Take the spans of one request."""
        spans = list(_spans(body))
        with self._lock:
            self._spans += spans

    def traces(self) -> dict[str, list[Span]]:
        """Return the spans by trace, sorted by their start."""
        found: dict[str, list[Span]] = defaultdict(list)
        with self._lock:
            for span in sorted(self._spans, key=lambda each: each.start_ns):
                found[span.trace].append(span)
        return dict(found)


@contextmanager
def trace_sink() -> Iterator[TraceSink]:
    """Listen for traces on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = self.headers["Content-Length"]
            sink.add(self.rfile.read(int(length)) if length else b"".join(self._chunks()))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _chunks(self) -> Iterator[bytes]:
            """Yield the parts of a body without a length, as Envoy sends it."""
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()

        def log_message(self, *_arguments: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer((_HOST, 0), Handler)
    sink = TraceSink(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _texts(resource.resource.attributes).get("service.name", "")
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    service,
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _texts(span.attributes),
                )


def _texts(attributes: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes if each.value.string_value}
