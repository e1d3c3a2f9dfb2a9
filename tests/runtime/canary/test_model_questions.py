"""The canary asks models over HTTP and reports in CloudWatch's embedded metric format."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from canary import model_questions


class Model(BaseHTTPRequestHandler):
    """Answers as a model does; the path's first part says how."""

    asked: list[tuple[str, Any]] = []  # noqa: RUF012 (one server per test run)

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        kind = self.path.split("/")[1]
        answers = {
            "right": (200, '{"choices": [{}], "data": [{}]}'),
            "empty": (200, '{"choices": []}'),
            "broken": (200, "<html>"),
            "down": (503, "{}"),
        }
        status, text = answers[kind]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as started:
        thread = threading.Thread(target=started.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{started.server_port}"
        started.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("right", ""),
        ("empty", "the answer holds nothing"),
        ("broken", "JSONDecodeError"),
        ("down", "status 503"),
    ],
)
def test_an_answer_is_right_or_its_fault_is_named(server: str, kind: str, error: str) -> None:
    found = model_questions.ask("qwen3-8b", f"{server}/{kind}/v1", "generate")
    assert found.startswith(error)
    assert bool(found) == bool(error)


def test_a_model_that_is_not_there_is_an_error() -> None:
    assert "refused" in model_questions.ask("qwen3-8b", "http://127.0.0.1:9/v1", "generate")


def test_a_model_of_vectors_is_asked_for_vectors(server: str) -> None:
    assert not model_questions.ask("vectors", f"{server}/right/v1", "embed")
    path, body = Model.asked[-1]
    assert path == "/right/v1/embeddings"
    assert set(body) == {"model", "input"}


def test_a_model_of_images_is_asked_for_a_small_one(server: str) -> None:
    assert not model_questions.ask("pictures", f"{server}/right/v1", "images")
    path, body = Model.asked[-1]
    assert path == "/right/v1/images/generations"
    assert (body["model"], body["size"], body["num_inference_steps"]) == ("pictures", "256x256", 1)


def test_a_failing_model_does_not_keep_the_next_from_being_asked(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [
        {"name": "first", "url": f"{server}/down/v1", "task": "generate"},
        {"name": "second", "url": f"{server}/right/v1", "task": "generate"},
    ]
    monkeypatch.setenv("CANARY_PLATFORM", "try")
    monkeypatch.setenv("CANARY_MODELS", json.dumps(models))
    model_questions.handle({}, None)
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["Model"], first["Success"], first["Error"]) == ("first", 0, "status 503")
    assert (second["Model"], second["Success"]) == ("second", 1)
    (directive,) = second["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["Platform", "Model"]]
    assert {each["Name"] for each in directive["Metrics"]} == {"Success", "Milliseconds"}
    assert all(name in second for name in ("Platform", "Model", "Success", "Milliseconds"))
