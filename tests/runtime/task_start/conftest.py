"""Real processes that prepare a task as `task_start` does, with a stand-in for the ECS agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.resources import root

PATIENCE_SECONDS = 60.0
ARN = "arn:aws:ecs:us-west-2:123456789012:task/platform/0123456789abcdef0123456789abcdef"
#: An engine that says what it got, then waits.
SAYS = (
    "import json,os,signal,sys;"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
    "heard = {'pid': os.getpid(), 'words': sys.argv[1:], 'variables': dict(os.environ)};"
    "print(json.dumps(heard), flush=True);"
    "signal.pause()"
)


class Agent(ThreadingHTTPServer):
    """The endpoints that the ECS agent offers to a task, and the ECS API.

    The paths and answers are those of the Amazon ECS Developer Guide, "Amazon ECS task metadata endpoint
    version 4" and "Task IAM role".
    """

    def __init__(self, address: str) -> None:
        super().__init__((address, 0), Answers)
        self.address: str | None = address
        self.refusals = 0
        self.refusal = (400, "ThrottlingException")
        self.calls: list[tuple[Mapping[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def variables(self) -> dict[str, str]:
        return {
            "ECS_CONTAINER_METADATA_URI_V4": f"{self.url}/v4/container",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/credentials",
            "AWS_ENDPOINT_URL_ECS": self.url,
        }


class Answers(BaseHTTPRequestHandler):
    server: Agent

    def do_GET(self) -> None:
        answers = {
            "/v4/container": {
                "Networks": [{"NetworkMode": "host", "IPv4Addresses": [self.server.address or ""]}]
            },
            "/v4/container/task": {"TaskARN": ARN},
            "/credentials": {"AccessKeyId": "AKID", "SecretAccessKey": "secret", "Token": "token"},
            "/live": {},
        }
        self._answer(200, answers[self.path])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append((dict(self.headers), body))
        if len(self.server.calls) <= self.server.refusals:
            code, kind = self.server.refusal
            self._answer(code, {"__type": kind})
        else:
            self._answer(200, {})

    def _answer(self, code: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@pytest.fixture
def agent() -> Iterator[Agent]:
    server = Agent("127.0.0.1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Task:
    """A task's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def heard(self) -> dict[str, Any]:
        """Return what the engine says it got."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                said: dict[str, Any] = json.loads(line)
                return said
        raise AssertionError(f"the engine did not start: exit {self.process.wait()}, {self.errors()}")

    def end(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def errors(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read()


Start = Callable[..., Task]


@pytest.fixture
def start(agent: Agent, tmp_path: Path) -> Iterator[Start]:
    """Start tasks; those that still run at the end are killed."""
    started: list[subprocess.Popen[str]] = []

    def run(document: Mapping[str, Any], *words: str, code: str = SAYS, **variables: str) -> Task:
        folder = tmp_path / f"task-{len(started)}"
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "task_start", "--", sys.executable, "-c", code, *words],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(root() / "runtime"),
                "TMPDIR": str(folder),
                **agent.variables(),
                "TASK_START": json.dumps(document),
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return Task(process)

    yield run
    for process in started:
        process.kill()
        process.communicate()
