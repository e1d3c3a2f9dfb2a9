"""The stand-ins for llm-d's picker and sidecar, between a client and workers of the tests."""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_catalog.charts import charts_directory
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from inference_local.serving.llm_d import picker_stand_in, sidecar_stand_in
from inference_local.serving.llm_d.llm_d_router import LlmDRouter
from inference_local.serving.llm_d.picker_stand_in import OF_THE_PICKER

_TIMEOUT = 240.0
_CHAT = "/v1/chat/completions"
_USAGE = {"prompt_tokens": 900, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 896}}
_TRANSFER = {"do_remote_prefill": True, "remote_host": "127.0.0.9", "remote_block_ids": [[4, 5]]}
_QUESTION = {"model": "m", "messages": [], "max_tokens": 70, "stream_options": {"include_usage": True}}

Reply = tuple[int, Mapping[str, str], bytes]


def _deployment() -> DeploymentPlan:
    """The shipped deployment with separate prefill and decode."""
    (model,) = build_plan(load_blueprint("llm-d-disaggregated").blueprint).models
    return model.deployments[0]


def _json(content: object, status: int = 200) -> Reply:
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()


_COMPUTED = _json(
    {"usage": {"prompt_tokens_details": {"cached_tokens": 64}}, "kv_transfer_params": _TRANSFER}
)


@dataclass
class Worker:
    """A worker that answers everything in the same way, and what it has received."""

    reply: Reply = field(default_factory=lambda: _json({"usage": _USAGE}))
    received: list[tuple[str, Mapping[str, str], Any]] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class Running:
    """Workers and stand-ins of one test."""

    def __init__(self, directory: Path, resources: ExitStack) -> None:
        self._log = directory
        self._resources = resources
        self._group = resources.enter_context(ProcessGroup(grace_seconds=1))

    def worker(self, reply: Reply | None = None) -> Worker:
        worker = Worker() if reply is None else Worker(reply)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(worker))
        worker.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self._resources.callback(server.server_close)
        self._resources.callback(server.shutdown)
        return worker

    def sidecar(self, worker: Worker) -> int:
        """Start the stand-in with the plan's arguments, on another port, and return the port."""
        (port,) = free_ports(1)
        (planned,) = _deployment().workers[-1].sidecars
        arguments = [
            f"--port={port}" if argument.startswith("--port=") else argument for argument in planned.arguments
        ]
        self._start(sidecar_stand_in.__name__, "127.0.0.1", str(worker.port), *arguments)
        _wait_until(lambda: _status(port, "/health") == 200, self._group)
        return port

    def picker(self, *, decode: list[str], prefill: list[str], ready: int) -> int:
        (port,) = free_ports(1)
        workers = json.dumps({"decode": decode, "prefill": prefill})
        self._start(picker_stand_in.__name__, workers, "--port", str(port))
        _wait_until(lambda: len(_instances(port)) == ready, self._group)
        return port

    def router(self, decode: list[str], home: Path) -> int:
        """Start what a local run starts, and return its port."""
        (port,) = free_ports(1)
        launch = LlmDRouter(_deployment().entry_point).launch(port, home, {"decode": decode})
        self._group.start("router", launch.command, environment=launch.environment, log_path=home / "log")
        _wait_until(lambda: len(_instances(port)) == len(decode), self._group)
        return port

    def _start(self, module: str, *arguments: str) -> None:
        self._group.start(
            module,
            [sys.executable, "-m", module, *arguments],
            environment=os.environ,
            log_path=self._log / f"{module}.log",
        )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with ExitStack() as resources:
        yield Running(tmp_path, resources)


def test_a_prefill_worker_computes_the_prompt_and_the_decode_worker_reads_it(
    running: Running,
) -> None:
    decode, prefill = running.worker(), running.worker(_COMPUTED)
    port = running.sidecar(decode)
    question = {**_QUESTION, "stream": False, "min_tokens": 9}
    status, _, body = _ask(port, question, {"x-prefiller-host-port": prefill.address})
    ((_, first_headers, first),) = prefill.received
    ((_, then_headers, then),) = decode.received
    asked = {"do_remote_decode": True, "do_remote_prefill": False}
    unknown = dict.fromkeys(("remote_engine_id", "remote_block_ids", "remote_host", "remote_port"))
    one = dict.fromkeys(("max_tokens", "max_completion_tokens", "min_tokens"), 1)
    kept = {name: value for name, value in question.items() if name != "stream_options"}
    assert first == {**kept, **one, "stream": False, "kv_transfer_params": {**asked, **unknown}}
    assert then == {**question, "kv_transfer_params": _TRANSFER}
    assert first_headers["x-request-id"] == then_headers["x-request-id"]
    assert "x-prefiller-host-port" not in {*first_headers, *then_headers}
    assert status == 200
    assert json.loads(body)["usage"] == {**_USAGE, "prompt_tokens_details": {"cached_tokens": 64}}


def test_the_usage_of_a_stream_has_the_cached_tokens_of_the_prefill_worker(running: Running) -> None:
    word = b'data: {"choices": [{"delta": {"content": "caf\xc3\xa9"}}]}\n\n'
    usage = b"data: " + json.dumps({"choices": [], "usage": _USAGE}).encode() + b"\n\n"
    events = (200, {"Content-Type": "text/event-stream"}, word + usage + b"data: [DONE]\n\n")
    port = running.sidecar(running.worker(events))
    prefill = running.worker(_COMPUTED)
    _, headers, body = _ask(port, {**_QUESTION, "stream": True}, {"x-prefiller-host-port": prefill.address})
    assert headers["Content-Type"] == "text/event-stream"
    first, second, done = [line for line in body.split(b"\n") if line]
    assert (first, done) == (word.strip(), b"data: [DONE]")
    reported = json.loads(second.removeprefix(b"data: "))["usage"]
    assert reported == {**_USAGE, "prompt_tokens_details": {"cached_tokens": 64}}


def test_without_a_prefill_worker_the_request_and_the_answer_stay_as_they_are(running: Running) -> None:
    decode = running.worker()
    status, _, body = _ask(running.sidecar(decode), _QUESTION)
    assert [each[2] for each in decode.received] == [_QUESTION]
    assert (status, json.loads(body)) == (200, {"usage": _USAGE})


def test_a_refusal_of_the_prefill_worker_reaches_the_client_and_no_decode_worker(running: Running) -> None:
    decode, prefill = running.worker(), running.worker(_json({"error": {"code": 404}}, 404))
    port = running.sidecar(decode)
    status, _, body = _ask(port, _QUESTION, {"x-prefiller-host-port": prefill.address})
    assert (status, json.loads(body)) == (404, {"error": {"code": 404}})
    (nobody,) = free_ports(1)
    assert _ask(port, _QUESTION, {"x-prefiller-host-port": f"127.0.0.1:{nobody}"})[0] == 502
    assert not decode.received


def test_what_is_no_object_is_refused_before_any_worker(running: Running) -> None:
    decode, prefill = running.worker(), running.worker(_COMPUTED)
    port = running.sidecar(decode)
    named = {"x-prefiller-host-port": prefill.address}
    assert [_ask(port, body, named)[0] for body in (b'{"model": ', b"[1]")] == [400, 400]
    assert not decode.received
    assert not prefill.received


def test_a_dead_decode_worker_is_a_503(running: Running) -> None:
    worker = running.worker()
    port = running.sidecar(worker)
    (nobody,) = free_ports(1)
    other = running.picker(decode=[worker.address, f"127.0.0.1:{nobody}"], prefill=[], ready=1)
    assert [_ask(other, _QUESTION)[0] for _ in range(3)] == [200] * 3
    assert _ask(port, _QUESTION)[0] == 200
    dead = running.picker(decode=[f"127.0.0.1:{nobody}"], prefill=[], ready=0)
    assert _ask(dead, _QUESTION)[0] == 503


def test_workers_of_each_role_are_chosen_in_turn(running: Running) -> None:
    decode = [running.worker(), running.worker()]
    prefill = [running.worker() for _ in range(3)]
    addresses = [each.address for each in prefill]
    port = running.picker(decode=[each.address for each in decode], prefill=addresses, ready=5)
    for _ in range(6):
        assert _ask(port, _QUESTION)[0] == 200
    assert [len(each.received) for each in decode] == [3, 3]
    named = [headers["x-prefiller-host-port"] for each in decode for _, headers, _ in each.received]
    assert sorted(named) == sorted(addresses * 2)
    assert not any(each.received for each in prefill)


def test_a_caller_chooses_no_worker_and_reaches_the_api_alone(running: Running) -> None:
    decode = running.worker()
    port = running.picker(decode=[decode.address], prefill=[], ready=1)
    assert _ask(port, _QUESTION, dict.fromkeys(OF_THE_PICKER, "127.0.0.1:1"))[0] == 200
    ((_, headers, _),) = decode.received
    assert not set(OF_THE_PICKER) & set(headers)
    assert {_status(port, path) for path in ("/metrics", "/tokenize", "/v1", "/inference/v1/generate")} == {
        404
    }
    assert len(decode.received) == 1


def test_a_local_run_checks_bodies_before_the_picker(running: Running, tmp_path: Path) -> None:
    """Red if a local run starts the stand-in without the plan's filter."""
    decode = running.worker()
    port = running.router([decode.address], tmp_path)
    status, _, body = _ask(port, {**_QUESTION, "bad_words": ["word"] * 100})
    assert (status, json.loads(body)["error"]["param"]) == (400, "bad_words")
    status, headers, _ = _ask(port, {**_QUESTION, "priority": 1})
    assert (status, headers["x-removed-fields"]) == (200, "priority")
    assert [each[2] for each in decode.received] == [_QUESTION]


def test_the_headers_of_the_picker_are_those_that_the_chart_removes() -> None:
    envoy = (charts_directory() / "llm-d-model" / "templates" / "_envoy.tpl").read_text(encoding="utf-8")
    (removed,) = re.findall(r"range list (.*?) }}\n *- remove:", envoy)
    assert tuple(re.findall(r'"([^"]+)"', removed)) == OF_THE_PICKER


def _handler(worker: Worker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(_json({}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            worker.received.append((self.path, headers, body))
            self._answer(worker.reply)

        def _answer(self, reply: Reply) -> None:
            status, headers, body = reply
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler


def _ask(port: int, body: object, headers: Mapping[str, str] | None = None) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _sent(port, "POST", _CHAT, data, {"Content-Type": "application/json", **(headers or {})})


def _status(port: int, path: str) -> int:
    try:
        return _sent(port, "GET", path)[0]
    except OSError:
        return 0


def _instances(port: int) -> list[object]:
    try:
        return list(json.loads(_sent(port, "GET", "/health")[2]).get("instances", ()))
    except OSError:
        return [None] * 100


def _sent(
    port: int, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return response.status, dict(response.headers), response.read()
    finally:
        connection.close()


def _wait_until(holds: Any, group: ProcessGroup) -> None:
    end = time.monotonic() + 240
    while not holds():
        group.check()
        assert time.monotonic() < end
        time.sleep(0.05)
