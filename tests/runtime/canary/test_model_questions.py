"""The canary asks models over HTTP and reports in CloudWatch's embedded metric format."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from canary import model_questions

from inference_contracts.platform_keys import PLATFORM_TEAM, SECRET_VARIABLE, way_model, write_keys


class Model(BaseHTTPRequestHandler):
    """Answers as a model does; the path's first part says how."""

    asked: list[tuple[str, Any]] = []  # noqa: RUF012 (one server per test run)
    keys: list[str | None] = []  # noqa: RUF012

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        self.keys.append(self.headers["Authorization"])
        kind = self.path.split("/")[1]
        answers = {
            "right": (200, '{"choices": [{}], "data": [{}], "results": [{}]}'),
            "empty": (200, '{"choices": []}'),
            "broken": (200, "<html>"),
            "down": (503, "{}"),
            "shed": (429, '{"error": {"code": "rate_limit_exceeded"}}'),
            "stranger": (401, '{"error": {"code": "invalid_api_key"}}'),
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
        ("shed", "status 429 rate_limit_exceeded"),
        ("stranger", "status 401 invalid_api_key"),
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


def test_a_model_of_scores_is_asked_for_scores(server: str) -> None:
    """Its answer has ``results`` (vLLM documentation, "Pooling Models", re-rank API)."""
    assert not model_questions.ask("ranker", f"{server}/right/v1", "rerank")
    path, body = Model.asked[-1]
    assert path == "/right/v1/rerank"
    assert set(body) == {"model", "query", "documents"}


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


# Behind a front door.

SECRET = "arn:aws:secretsmanager:us-west-2:111122223333:secret:canary-AbCdEf"  # noqa: S105 -- a name


class Secrets:
    """Secrets Manager with one secret."""

    def __init__(self, value: str | None) -> None:
        self.value = value

    def client(self, service: str) -> Secrets:
        assert service == "secretsmanager"
        return self

    def get_secret_value(self, *, SecretId: str) -> dict[str, str]:  # noqa: N803
        assert SecretId == SECRET
        if self.value is None:
            error = {"Error": {"Code": "ResourceNotFoundException", "Message": "no value"}}
            raise ClientError(error, "GetSecretValue")
        return {"SecretString": self.value}


Round = Callable[[str, str | None], dict[str, Any]]


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Round:
    """A round with one model behind a front door at an address, and with a value of the secret."""

    def run(url: str, value: str | None) -> dict[str, Any]:
        monkeypatch.setattr(boto3, "client", Secrets(value).client)
        model = {"name": "chat", "asked": way_model("canary", "chat"), "url": url, "task": "generate"}
        monkeypatch.setenv("CANARY_PLATFORM", "try")
        monkeypatch.setenv("CANARY_MODELS", json.dumps([model]))
        monkeypatch.setenv(SECRET_VARIABLE, SECRET)
        model_questions.handle({}, None)
        (line,) = capsys.readouterr().out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    return run


def test_it_asks_the_front_door_with_the_key_of_the_platform(server: str, one_round: Round) -> None:
    """Red if the metric has the name of the way: alarms are on that of the model."""
    keys = write_keys({PLATFORM_TEAM: "ib-secret", "shop": "ib-other"})
    line = one_round(f"{server}/right/v1", keys)
    assert (line["Model"], line["Success"]) == ("chat", 1)
    assert Model.asked[-1][1]["model"] == "canary:chat"
    assert Model.keys[-1] == "Bearer ib-secret"
    assert "ib-secret" not in json.dumps(line)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (None, "right", "ResourceNotFoundException"),
        ("{}", "right", "got no key for team '_platform'"),
        ("[]", "right", "no JSON object"),
        ('{"_platform": "ib-secret"}', "stranger", "refuses the canary's key: status 401 invalid_api_key"),
    ],
)
def test_without_a_key_that_the_door_takes_no_model_is_said_to_fail(
    server: str, one_round: Round, value: str | None, kind: str, words: str
) -> None:
    """Red if there is a metric: then a platform that has just begun has models that fail."""
    line = one_round(f"{server}/{kind}/v1", value)
    assert line.keys() == {"event", "platform", "why"}
    assert words in line["why"]
    assert "ib-secret" not in line["why"]
