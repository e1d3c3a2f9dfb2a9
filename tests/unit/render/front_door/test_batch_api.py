"""The batch API behind the real Envoy: by TLS, under a name that comes later, and nowhere else."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from front_door.watched_configuration import WatchedConfiguration

from inference_blueprints.render.envoy.parts import Peer
from inference_blueprints.render.front_door.documents import door_documents
from inference_blueprints.render.front_door.places import BATCH_PATHS, UpstreamPlace
from inference_contracts.door_object import BATCH_HOST
from inference_local.processes.free_ports import free_ports
from tests.unit.render.front_door.door_process import LOOPBACK, Door, reply
from tests.unit.render.front_door.small_plans import small_plan
from tests.unit.render.front_door.test_fetched_keys import issued

pytestmark = pytest.mark.clock

_KEY = {"authorization": "Bearer key"}
_GATEWAY = "execute-api.us-west-2.amazonaws.com"


@contextmanager
def api_served(port: int, certificate: Path) -> Iterator[None]:
    """Answer over TLS with what was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = (self.path, self.headers["host"], self.headers["authorization"])
            reply(self, 200, json.dumps(asked).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield
    server.shutdown()
    server.server_close()
    thread.join()


class LaterHost:
    """The parameter with the host name of the API."""

    name = ""

    def current(self) -> str:
        return self.name


def test_the_api_is_reached_as_soon_as_its_name_is_known(tmp_path: Path) -> None:
    """Red if Envoy refuses a configuration without the name, or has to start again for it."""
    certificate = issued(tmp_path, "authority")
    [port] = free_ports(1)
    door = Door(tmp_path, small_plan())
    door.places = replace(
        door.places, batch=UpstreamPlace(BATCH_HOST, port, Peer(str(certificate), (BATCH_HOST,)))
    )
    documents = door_documents(door.plan, door.places)
    object_ = tmp_path / "object.json"
    object_.write_text(
        json.dumps(
            {
                "policy": json.loads(door.plan.configuration.to_json()),
                "envoy": {"listeners": documents.listeners, "clusters": documents.clusters},
            }
        )
    )
    (tmp_path / "xds").mkdir()
    later = LaterHost()
    watched = WatchedConfiguration(str(object_), Path(door.places.files), tmp_path, None, later)  # type: ignore[arg-type]
    watched.read()
    with api_served(port, certificate), door.running():
        for path in BATCH_PATHS:
            nowhere = door.ask("GET", path, headers=_KEY)
            assert (nowhere.status, nowhere.code) == (503, "batch_unavailable")
            assert "the batch API cannot be reached" in str(nowhere.body)
            assert nowhere.headers["retry-after"] == "2"
        later.name = "localhost"
        watched.read()
        # Envoy reads two files, one after the other.
        expected = json.dumps(["/prod/v1/batches/batch_1?after=x", "localhost", "Bearer key"]).encode()
        path = "/v1/batches/batch_1?after=x"
        door.wait_until(lambda: door.ask("GET", path, headers=_KEY).body == expected)
        assert door.policy.seen == []


@pytest.mark.parametrize(
    ("shown", "status"), [(f"*.{_GATEWAY}", 200), ("*.execute-api.eu-west-1.amazonaws.com", 503)]
)
def test_the_certificate_must_be_that_of_api_gateway_in_the_region(
    shown: str, status: int, tmp_path: Path
) -> None:
    """API Gateway shows a wildcard. Red if it does not count, or if another name does."""
    certificate = issued(tmp_path, "authority", shown)
    [port] = free_ports(1)
    name = f"a1b2c3d4e5-vpce-0123456789abcdef0.{_GATEWAY}"
    door = Door(tmp_path, small_plan())
    place = UpstreamPlace(LOOPBACK, port, Peer(str(certificate), (name,)), server_name=name)
    door.places = replace(door.places, batch=place)
    with api_served(port, certificate), door.running():
        answer = door.ask("GET", "/v1/files", headers=_KEY)
    assert answer.status == status
    if status == 200:
        assert json.loads(answer.body) == ["/prod/v1/files", name, "Bearer key"]
    else:
        assert answer.code == "batch_unavailable"
