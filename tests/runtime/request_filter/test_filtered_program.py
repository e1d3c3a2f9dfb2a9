"""The packed filter with a program behind it, over real connections."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import EnvironmentValue, FilePath
from inference_contracts.request_filter import PROGRAM_VARIABLE, SETTINGS_VARIABLE, FilterSettings
from inference_local.processes.free_ports import free_ports
from tests.runtime.request_filter import small_server

pytestmark = pytest.mark.clock

PATIENCE_SECONDS = 60.0
PATH = "/v1/chat/completions"
_REQUEST_SECONDS = 2.0


class Filtered:
    """The filter of a plan's server, with the small server in place of the engine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.notes = folder, folder / "notes"
        [self.port] = free_ports(1)
        plan = build_plan(load_blueprint("image-generation").blueprint)
        self._server = plan.models[0].deployments[0].entry_point
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        planned = self._server.environment
        settings, program = planned[SETTINGS_VARIABLE], planned[PROGRAM_VARIABLE]
        assert isinstance(settings, FilePath)
        assert isinstance(program, FilePath)
        own = dataclasses.replace(
            FilterSettings.from_text(settings.text),
            state=str(self.folder / "suspects.json"),
            request_seconds=_REQUEST_SECONDS,
        )
        (self.folder / "settings").write_text(own.as_text())
        (self.folder / "program").write_text(program.text)
        _, *words = self._server.command[:-2]
        server = [sys.executable, small_server.__file__, str(self.notes), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, *words, *server],
            env={
                "PATH": os.environ["PATH"],
                SETTINGS_VARIABLE: str(self.folder / "settings"),
                PROGRAM_VARIABLE: str(self.folder / "program"),
            },
            start_new_session=True,
        )
        self.wait_for(lambda: self.get("/health") == 200)
        return self.process

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)

    def get(self, path: str) -> int:
        try:
            connection = self.connection()
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0

    def post(self, tokens: int, **fields: Any) -> tuple[int, bytes]:
        connection = self.connection()
        connection.request("POST", PATH, json.dumps({"max_tokens": tokens, **fields}))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def noted(self) -> list[Any]:
        text = self.notes.read_text() if self.notes.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def wait_for(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.05)


def test_before_a_program_of_another_container_it_waits_for_it_and_ends_with_a_signal(tmp_path: Path) -> None:
    """Red if the router of llm-d ends because Envoy is not there yet, or does not end when its pod does."""
    port, behind = free_ports(2)
    plan = build_plan(load_blueprint("llm-d-disaggregated").blueprint)
    router = plan.models[0].deployments[0].entry_point
    moved = {str(router.ports[0].number): str(port), router.arguments[-1]: str(behind)}
    words = [*router.command[1:], *(moved.get(word, word) for word in router.arguments)]
    environment = {"PATH": os.environ["PATH"], **_files(router.environment, tmp_path)}
    # As in a container with a low limit of open files, of which each request needs two.
    low = ["sh", "-c", 'ulimit -Sn 256 && exec "$@"', "sh"]
    process = subprocess.Popen([*low, sys.executable, *words], env=environment)
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while (status := _health(port)) == 0 and time.monotonic() < end:
            time.sleep(0.05)
        assert status == 503
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] > 256
        server = [sys.executable, small_server.__file__, str(tmp_path / "notes")]
        with subprocess.Popen([*server, "--host", "127.0.0.1", "--port", str(behind)]) as program:
            while _health(port) != 200 and time.monotonic() < end:
                time.sleep(0.05)
            assert _health(port) == 200
            program.kill()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def _files(planned: Mapping[str, EnvironmentValue], folder: Path) -> dict[str, str]:
    """Write the files of a plan's variables, and return the variables."""
    found = {}
    for name, value in planned.items():
        assert isinstance(value, FilePath)
        (folder / value.name).write_text(value.text)
        found[name] = str(folder / value.name)
    return found


def _health(port: int) -> int:
    """Return the status of the page. 0 if nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


@pytest.fixture
def filtered(tmp_path: Path) -> Iterator[Filtered]:
    made = Filtered(tmp_path)
    yield made
    # With the server behind it, which a killed filter leaves running; a container ends both.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(made.process.pid, signal.SIGKILL)
    made.process.wait()


def test_a_stream_comes_as_it_is_made_and_the_connection_stays(filtered: Filtered) -> None:
    """Red if chunks wait for the end of an answer, or each request needs a connection."""
    connection = filtered.connection()
    for _ in range(2):
        connection.request("POST", PATH, json.dumps({"max_tokens": 3, "nvext": {}}))
        answer = connection.getresponse()
        start, seen = time.monotonic(), []
        while piece := answer.read1():
            seen.append((piece, time.monotonic() - start))
        assert [piece for piece, _ in seen] == [b"data: 000", b"data: 001", b"data: 002"]
        assert seen[-1][1] > 0.7
        assert answer.headers["x-removed-fields"] == "nvext"
    assert [each["body"] for each in filtered.noted()] == [{"max_tokens": 3}] * 2


def test_a_caller_that_hangs_up_is_noticed_by_the_program(filtered: Filtered) -> None:
    """Red if an engine goes on for a caller who has gone."""
    caller = socket.create_connection(("127.0.0.1", filtered.port))
    body = json.dumps({"max_tokens": 999}).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: m\r\ncontent-length: {len(body)}\r\n\r\n"
    caller.sendall(head.encode() + body)
    caller.recv(100)
    caller.close()
    filtered.wait_for(lambda: "hung up" in filtered.noted())


def test_an_error_of_the_program_has_openais_form(filtered: Filtered) -> None:
    """Red if a client meets the form of one frontend."""
    connection = filtered.connection()
    for _ in range(2):
        connection.request("POST", PATH, json.dumps({"max_tokens": 404}))
        answer = connection.getresponse()
        error = json.loads(answer.read())["error"]
        assert (answer.status, error["code"], error["param"]) == (404, "model_not_found", "model")
        assert answer.headers["content-type"] == "application/json"


def test_nothing_beyond_the_checks_reaches_the_program(filtered: Filtered) -> None:
    assert filtered.post(1, allowed_token_ids=list(range(1025)))[0] == 400
    assert filtered.get("/v1/load_lora_adapter") == 404
    assert filtered.noted() == []


def test_a_request_that_never_ends_makes_room_and_an_idle_connection_stays(filtered: Filtered) -> None:
    """Red if a handful of callers that send a byte a second take all room for bodies."""
    idle = filtered.connection()
    idle.request("GET", "/health")
    assert idle.getresponse().read() == b"ok"
    started = time.monotonic()
    for begun in (b"POST", f"POST {PATH} HTTP/1.1\r\nhost: m\r\ncontent-length: 9\r\n\r\n{{".encode()):
        with socket.create_connection(("127.0.0.1", filtered.port), timeout=PATIENCE_SECONDS) as caller:
            caller.sendall(begun)
            assert _all(caller).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - started >= 2 * _REQUEST_SECONDS
    idle.request("GET", "/health")
    assert idle.getresponse().status == 200


def test_many_requests_at_once_are_answered_in_turn(filtered: Filtered) -> None:
    """Red if a caller that does not wait for answers gets them mixed up, or an error that closes all."""
    body = b'{"max_tokens": 1}'
    asked = f"POST {PATH} HTTP/1.1\r\nhost: m\r\ncontent-length: {len(body)}\r\n".encode()
    with socket.create_connection(("127.0.0.1", filtered.port), timeout=PATIENCE_SECONDS) as caller:
        caller.sendall(b"GET /none HTTP/1.1\r\nhost: m\r\n\r\n" * 2000)
        caller.sendall(asked + b"content-encoding: gzip\r\n\r\n" + body)
        # In chunks, with a trailer that is not passed on.
        chunked = asked.rpartition(b"content-length")[0] + b"transfer-encoding: chunked\r\n\r\n"
        caller.sendall(chunked + b"11\r\n" + body + b"\r\n0\r\nx-dynamo-priority: 9\r\n\r\n")
        caller.sendall(asked + b"connection: close\r\n\r\n" + body)
        found = re.findall(rb"HTTP/1.1 (\d+) ", _all(caller))
    assert found == [b"404"] * 2000 + [b"415", b"200", b"200"]
    assert "x-dynamo-priority" not in json.dumps(filtered.noted()).lower()


def _all(caller: socket.socket) -> bytes:
    """Return what comes until the connection ends."""
    found = b""
    while piece := caller.recv(65536):
        found += piece
    return found


def test_a_request_that_ended_its_engine_twice_is_refused_by_the_third(filtered: Filtered) -> None:
    """Red if the container, which starts again with its engine, forgets."""
    for _ in range(2):
        status, _ = filtered.post(13)
        assert status == 502
        assert filtered.process.wait(PATIENCE_SECONDS) == 1
        filtered.start()
    status, content = filtered.post(13)
    assert (status, json.loads(content)["error"]["code"]) == (503, "suspected_of_worker_deaths")
    assert filtered.post(1)[0] == 200


def test_a_program_that_is_told_to_end_is_no_death(filtered: Filtered) -> None:
    """Red if a rollout makes requests suspects, or the filter outlives its program."""
    filtered.process.send_signal(signal.SIGTERM)
    assert filtered.process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert not (filtered.folder / "suspects.json").exists()
