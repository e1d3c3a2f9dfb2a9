"""The client of CloudWatch's PromQL sends what AWS documents, and no answer is silently incomplete."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import boto3
import pytest

from inference_blueprints.deployment.batch.signing import signer
from inference_blueprints.deployment.costs.cloudwatch_queries import CloudWatchQueries
from inference_blueprints.errors import UserError

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, 1, tzinfo=UTC)
Ask = Callable[[int, Any], tuple[CloudWatchQueries, list[dict[str, Any]]]]


@pytest.fixture
def serve() -> Iterator[Ask]:
    """Return a function that starts a service with one answer, and returns its client and what it got."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, answer: Any) -> tuple[CloudWatchQueries, list[dict[str, Any]]]:
        got: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                got.append({"path": self.path, "form": parse_qs(body), "headers": dict(self.headers)})
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: object) -> None:
                """Write nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-west-2")
        sign = signer(session, region="us-west-2", service="monitoring")
        return CloudWatchQueries(f"http://127.0.0.1:{server.server_port}", sign), got

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _answer(*series: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def test_a_query_is_a_signed_form_and_values_come_back(serve: Ask) -> None:
    client, got = serve(200, _answer({"metric": {"model": "a"}, "values": [[1, "0.5"], [2, "1e3"]]}))
    [series] = client.ask('sum(x{platform="p"})', START, END, 300)
    assert (series.labels, series.values) == ({"model": "a"}, (0.5, 1000.0))
    [request] = got
    assert request["path"] == "/api/v1/query_range"
    assert request["form"] == {
        "query": ['sum(x{platform="p"})'],
        "start": [f"{START.timestamp():.0f}"],
        "end": [f"{END.timestamp():.0f}"],
        "step": ["300"],
    }
    assert "/us-west-2/monitoring/aws4_request" in request["headers"]["Authorization"]


def test_a_refusal_says_what_was_asked_and_which_permissions_it_needs(serve: Ask) -> None:
    client, _ = serve(403, {"message": "not authorized"})
    with pytest.raises(UserError, match=r"403 to the query x: not authorized; .*cloudwatch:GetMetricData"):
        client.ask("x", START, END, 300)


def test_an_answer_that_may_lack_series_is_refused(serve: Ask) -> None:
    client, _ = serve(200, _answer(*({"metric": {"n": str(n)}, "values": []} for n in range(500))))
    with pytest.raises(UserError, match="some may be missing"):
        client.ask("x", START, END, 300)


def test_a_service_that_is_not_reached_is_named() -> None:
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-west-2")
    sign = signer(session, region="us-west-2", service="monitoring")
    with pytest.raises(UserError, match="is not reached"):
        CloudWatchQueries("http://127.0.0.1:1", sign).ask("x", START, END, 300)
