"""How many workers a frontend lists: one that does not answer says nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from inference_local.serving import readiness
from inference_local.serving.readiness import (
    NotReady,
    registered_workers,
    wait_until_answered,
    wait_until_forgotten,
    wait_until_listed,
    wait_until_ready,
)

MODELS = {"data": [{"id": "qwen3-8b"}]}
HEALTH = {"instances": [{"endpoint": "generate"}, {"endpoint": "clear"}, {"endpoint": "generate"}]}


class Frontend(BaseHTTPRequestHandler):
    """Answers with what a test says."""

    answers: ClassVar[Mapping[str, object]] = {}
    statuses: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        if self.path not in self.answers:
            self.send_error(503)
            return
        body = json.dumps(self.answers[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(self.statuses.pop())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Frontend) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port that nobody else gets and on which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize(
    ("answers", "workers"),
    [
        ({"/v1/models": MODELS, "/health": HEALTH}, 2),
        ({"/v1/models": {"data": []}, "/health": HEALTH}, 0),
        ({"/v1/models": MODELS}, 0),
        ({}, 0),
    ],
)
def test_workers_are_those_that_the_frontend_lists(
    answers: Mapping[str, object], workers: int, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Frontend, "answers", answers)
    assert registered_workers(port, "qwen3-8b") == workers


def test_a_frontend_that_does_not_answer_has_no_number(closed_port: int) -> None:
    assert registered_workers(closed_port, "qwen3-8b") is None


def test_a_frontend_that_does_not_answer_is_neither_ready_nor_rid_of_workers(closed_port: int) -> None:
    for wait in (wait_until_ready, wait_until_forgotten):
        with pytest.raises(NotReady):
            wait("frontend", closed_port, "qwen3-8b", 1, deadline=0.0, check=lambda: None)


def test_a_frontend_that_answers_503_is_asked_again(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefill routing starts after the frontend lists the model."""
    monkeypatch.setattr(readiness, "_PERIOD_SECONDS", 0.0)
    Frontend.statuses.extend([200, 503, 503])
    wait_until_answered("frontend", port, "qwen3-8b", deadline=time.monotonic() + 240, check=lambda: None)
    assert Frontend.statuses == []


def test_a_frontend_is_asked_for_a_name_that_it_does_not_list(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first request for a structure would be a 404."""
    monkeypatch.setattr(Frontend, "answers", {"/v1/models/m:one": {"id": "m:one"}})
    wait_until_listed("frontend", port, "m:one", deadline=0.0, check=lambda: None)
    with pytest.raises(NotReady, match="it does not know 'm:two'"):
        wait_until_listed("frontend", port, "m:two", deadline=0.0, check=lambda: None)


def test_a_frontend_that_answers_no_request_is_not_ready(closed_port: int) -> None:
    with pytest.raises(NotReady, match="frontend was not ready in time: it answers no request"):
        wait_until_answered("frontend", closed_port, "qwen3-8b", deadline=0.0, check=lambda: None)
