"""Tasks that are prepared in this process, or start as real ones, with a stand-in for the ECS agent."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from task_start.__main__ import main, prepare
from task_start.start_document import read_document

from inference_blueprints.resources import root
from tests.runtime.waiting_processes import waits_for_lock

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
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


_hosts = itertools.count()


@pytest.fixture
def new_host() -> Callable[[], str]:
    """Return loopback addresses that nobody else on this machine uses: blocks of ports belong to one."""

    def address() -> str:
        number = next(_hosts)
        return f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}.{1 + number % 250}"

    return address


#: The command and the environment of a prepared task.
Prepared = tuple[list[str], dict[str, str]]


class TasksHere:
    """Tasks in this process. What they hold over exec is held until the test ends."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        self._agent, self._folder = agent, folder

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {"TMPDIR": str(self._folder), **self._agent.variables(), **variables}

    def prepare(self, document: Mapping[str, Any], *words: str, **variables: str) -> Prepared:
        """Prepare a task, up to the moment when it becomes the engine."""
        text = json.dumps(document)
        return prepare(read_document(text), words, self._environment({"TASK_START": text, **variables}))

    def start(self, document: Mapping[str, Any], *words: str) -> int:
        """Run the program, which has to fail, and return its exit code."""
        return main(["--", *(words or ("true",))], self._environment({"TASK_START": json.dumps(document)}))


@pytest.fixture
def here(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TasksHere]:
    """Prepare tasks in this process; what they take is given back at the end."""
    held: list[int] = []
    keep = os.set_inheritable

    def note(descriptor: int, inheritable: bool) -> None:  # noqa: FBT001 - as that of `os`
        held.append(descriptor)
        keep(descriptor, inheritable)

    monkeypatch.setattr(os, "set_inheritable", note)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)
    yield TasksHere(agent, tmp_path)
    signal.signal(signal.SIGTERM, before)
    for descriptor in held:
        os.close(descriptor)


def wait_for_lock(process: subprocess.Popen[str]) -> None:
    """Return when a process waits for a lock that another one has."""
    while not waits_for_lock(process.pid):
        assert process.poll() is None


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
