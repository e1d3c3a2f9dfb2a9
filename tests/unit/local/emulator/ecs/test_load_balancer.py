"""The stand-in for the load balancer, in front of servers of this process."""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from inference_local.emulator.ecs.network.load_balancer import LoadBalancer
from tests.unit.local.emulator.ecs.test_target_health import settings

pytestmark = pytest.mark.clock

#: It ends a test that hangs.
_PATIENCE_SECONDS = 240.0
GROUP = "arn:group"
RULES: list[dict[str, Any]] = [
    {"Priority": "default", "Conditions": [], "Actions": [{"Type": "fixed-response"}]},
    {
        "Priority": "7",
        "Conditions": [{"Field": "host-header", "Values": ["model.internal"]}],
        "Actions": [
            {"Type": "forward", "ForwardConfig": {"TargetGroups": [{"TargetGroupArn": GROUP, "Weight": 1}]}}
        ],
    },
]


class Server:
    """Answers after `let_go` is set; its health page at once."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.let_go.set()
        outer = self

        class _Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/live":
                    outer.let_go.wait(_PATIENCE_SECONDS)
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"here")

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


@pytest.fixture
def balancer() -> Iterator[tuple[LoadBalancer, Callable[..., tuple[int, bytes]]]]:
    delay = {"deregistration_delay.timeout_seconds": "1"}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = LoadBalancer([listener], lambda: RULES, lambda _: settings(**delay), 100)

        def ask(host: str, path: str = "/") -> tuple[int, bytes]:
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS) as answer:  # noqa: S310
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()

        yield found, ask
        found.close()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_rule_of_the_host_chooses_the_targets(balancer: Any, server: Server) -> None:
    found, ask = balancer
    assert ask("model.internal")[0] == 503
    found.register(GROUP, "127.0.0.1", server.port)
    until(lambda: found.is_healthy(GROUP, "127.0.0.1", server.port))
    assert ask("model.internal") == (200, b"here")
    assert ask("other.internal")[0] == 404


def test_the_rule_with_the_smallest_number_is_tried_first(
    balancer: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text, 10 comes before 7, and the rule with 10 has no targets."""
    later = {"Priority": "10", "Actions": [{"Type": "forward", "TargetGroupArn": "arn:empty"}]}
    monkeypatch.setitem(globals(), "RULES", [{**RULES[1], **later}, *RULES])
    found, ask = balancer
    found.register(GROUP, "127.0.0.1", server.port)
    until(lambda: found.is_healthy(GROUP, "127.0.0.1", server.port))
    assert ask("model.internal")[0] == 200


@pytest.mark.parametrize(("path", "code"), [("/v1/models", 200), ("/V1/models", 404), ("/metrics", 404)])
def test_the_rule_of_the_path_chooses_the_targets(
    balancer: Any, server: Server, monkeypatch: pytest.MonkeyPatch, path: str, code: int
) -> None:
    monkeypatch.setitem(
        RULES[1],
        "Conditions",
        [*RULES[1]["Conditions"], {"Field": "path-pattern", "PathPatternConfig": {"Values": ["/v1/*"]}}],
    )
    found, ask = balancer
    found.register(GROUP, "127.0.0.1", server.port)
    until(lambda: found.is_healthy(GROUP, "127.0.0.1", server.port))
    assert ask("model.internal", path)[0] == code


def test_a_target_that_does_not_answer_is_a_bad_gateway(balancer: Any, server: Server) -> None:
    found, ask = balancer
    server.close()
    found.register(GROUP, "127.0.0.1", server.port)
    until(lambda: list(found.states(GROUP).values()) == ["unhealthy"])
    assert ask("model.internal")[0] == 502


def test_a_request_of_a_draining_target_ends_before_its_delay(balancer: Any, server: Server) -> None:
    found, ask = balancer
    found.register(GROUP, "127.0.0.1", server.port)
    until(lambda: found.is_healthy(GROUP, "127.0.0.1", server.port))
    server.let_go.clear()
    answers: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: answers.append(ask("model.internal")))
    asking.start()
    until(lambda: found.open_requests(GROUP) == 1)
    found.deregister(GROUP, "127.0.0.1", server.port)
    assert not found.is_unused(GROUP, "127.0.0.1", server.port)
    assert ask("model.internal")[0] == 503
    server.let_go.set()
    asking.join()
    assert answers == [(200, b"here")]
    until(lambda: found.is_unused(GROUP, "127.0.0.1", server.port))


def test_a_request_is_cut_at_the_end_of_the_delay(balancer: Any, server: Server) -> None:
    found, ask = balancer
    found.register(GROUP, "127.0.0.1", server.port)
    until(lambda: found.is_healthy(GROUP, "127.0.0.1", server.port))
    server.let_go.clear()
    cut: list[Exception] = []

    def asks() -> None:
        try:
            ask("model.internal")
        except OSError as error:
            cut.append(error)

    asking = threading.Thread(target=asks)
    asking.start()
    until(lambda: found.open_requests(GROUP) == 1)
    found.deregister(GROUP, "127.0.0.1", server.port)
    until(lambda: found.is_unused(GROUP, "127.0.0.1", server.port))
    asking.join()
    assert len(cut) == 1
