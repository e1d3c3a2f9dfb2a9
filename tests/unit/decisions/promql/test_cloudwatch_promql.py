"""The client of CloudWatch's PromQL sends what AWS documents, and no answer is silently incomplete."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import boto3
import pytest

from inference_blueprints.operate.batch.batch_api_client import signer
from inference_contracts.errors import UserError
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql

Got = list[dict[str, Any]]
Serve = Callable[..., tuple[CloudWatchPromql, Got]]


def client(address: str, waits: list[float]) -> CloudWatchPromql:
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-west-2")
    sign = signer(session, region="us-west-2", service="monitoring")
    return CloudWatchPromql(address, sign, failure=UserError, wait=waits.append)


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def serve(waits: list[float]) -> Iterator[Serve]:
    """Return a function that starts a service with these answers, the last again and again."""
    servers: list[ThreadingHTTPServer] = []

    def start(*answers: tuple[int, Any]) -> tuple[CloudWatchPromql, Got]:
        got: Got = []
        left = list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                got.append({"path": self.path, "form": parse_qs(body), "headers": dict(self.headers)})
                status, answer = left.pop(0) if len(left) > 1 else left[0]
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: object) -> None:
                """Write nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return client(f"http://127.0.0.1:{server.server_port}/", waits), got

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def answer(*series: dict[str, Any], **more: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"status": "success", "data": {"resultType": "matrix", "result": list(series)}, **more}


def many(count: int) -> list[dict[str, Any]]:
    return [{"metric": {"n": str(number)}, "value": [1, "1"]} for number in range(count)]


def test_a_query_is_a_signed_form_and_points_come_back(serve: Serve) -> None:
    series = {"metric": {"__name__": "x", "model": "a"}, "values": [[1, "0.5"], [2, "1e3"], [3, "+Inf"]]}
    asked, got = serve(answer(series))
    [found] = asked.range('x{platform="p"}', 1000, 4600, 300)
    assert found.labels == {"model": "a"}
    assert found.points == ((1.0, 0.5), (2.0, 1000.0), (3.0, math.inf))
    [request] = got
    assert request["path"] == "/api/v1/query_range"
    assert request["form"] == {
        "query": ['x{platform="p"}'],
        "start": ["1000.000"],
        "end": ["4600.000"],
        "step": ["300"],
    }
    assert "/us-west-2/monitoring/aws4_request" in request["headers"]["Authorization"]


def test_an_instant_query_has_one_time(serve: Serve) -> None:
    asked, got = serve(answer({"metric": {}, "value": [1000, "2"]}))
    [found] = asked.instant("sum(x)", 1000)
    assert found.points == ((1000.0, 2.0),)
    assert (got[0]["path"], got[0]["form"]["time"]) == ("/api/v1/query", ["1000.000"])


def test_a_refusal_says_what_was_asked_and_which_permissions_it_needs(
    serve: Serve, waits: list[float]
) -> None:
    asked, got = serve((403, {"message": "not authorized"}))
    with pytest.raises(UserError, match=r"403 to the query x: not authorized; .*cloudwatch:GetMetricData"):
        asked.instant("x", 1000)
    assert (len(got), waits) == (1, [])


@pytest.mark.parametrize("status", [422, 429, 503])
def test_what_may_pass_is_asked_again(serve: Serve, waits: list[float], status: int) -> None:
    refused = status, {"status": "error", "error": "too many queries"}
    asked, got = serve(refused, answer({"metric": {}, "value": [1, "2"]}))
    assert len(asked.instant("x", 1000)) == 1
    assert (len(got), len(waits)) == (2, 1)
    asked, got = serve(refused)
    with pytest.raises(UserError, match=f"{status} to the query x: too many queries"):
        asked.instant("x", 1000)
    assert len(got) == 3


def test_one_series_less_than_the_most_is_complete(serve: Serve) -> None:
    asked, _ = serve(answer(*many(499)))
    assert len(asked.instant("x", 1000)) == 499


def test_as_many_series_as_an_answer_may_have_could_be_more(serve: Serve) -> None:
    asked, _ = serve(answer(*many(500)))
    with pytest.raises(UserError, match=r"got 500 series for x; .* some may be missing"):
        asked.instant("x", 1000)


def test_a_warning_means_that_something_is_missing(serve: Serve) -> None:
    asked, _ = serve(answer(*many(2), warnings=["results truncated due to limit"]))
    with pytest.raises(UserError, match=r"not complete: .*results truncated"):
        asked.instant("x", 1000)


def test_a_remark_does_not(serve: Serve) -> None:
    """`infos` are about the query, such as a rate of what may be no counter."""
    asked, _ = serve(answer(*many(2), infos=["PromQL info: metric might not be a counter"], warnings=[]))
    assert len(asked.instant("x", 1000)) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"status": "success", "data": {"res',
        b"[]",
        b'{"data": {"result": []}}',
        b'{"status": "error", "data": {"result": []}}',
        b'{"status": "success", "data": {"result": null}}',
    ],
)
def test_what_is_no_answer_is_not_taken_for_an_empty_one(serve: Serve, content: bytes) -> None:
    asked, _ = serve((200, content))
    with pytest.raises(UserError, match="CloudWatch's answer to x"):
        asked.instant("x", 1000)


def test_a_service_that_is_not_reached_is_named(waits: list[float]) -> None:
    with pytest.raises(UserError, match=r"at http://127.0.0.1:1: .* check the network"):
        client("http://127.0.0.1:1", waits).range("x", 0, 60, 60)
    assert len(waits) == 2
