"""Keys of issuers that the real Envoy fetches: from a server that it can check, and from no other."""

from __future__ import annotations

import datetime
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from inference_blueprints.serving.types.front_door import DoorKeySet
from inference_contracts import door_headers
from inference_local.processes.free_ports import free_ports
from tests.unit.render.front_door import tokens
from tests.unit.render.front_door.door_process import CHAT, LOOPBACK, Door, reply
from tests.unit.render.front_door.small_plans import small_plan
from tests.unit.render.front_door.tokens import AUDIENCE, ISSUER, token

pytestmark = pytest.mark.clock

_OTHER = "https://other.example.com"
_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)


def issued(folder: Path, name: str, host: str = "localhost") -> Path:
    """Write a certificate for a host that signs itself, with its key, and return its file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / f"{name}.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + pem)
    return file


@contextmanager
def keys_served(port: int, certificate: Path, *names: str) -> Iterator[None]:
    """Serve a key set over TLS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply(self, 200, json.dumps(tokens.key_set(*names)).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("fetched")
    known, unknown = issued(folder, "known"), issued(folder, "unknown")
    own, other = free_ports(2)
    key_sets = (
        DoorKeySet(ISSUER, AUDIENCE, f"https://localhost:{own}/keys", None),
        DoorKeySet(_OTHER, AUDIENCE, f"https://localhost:{other}/keys", None),
    )
    with ExitStack() as stack:
        stack.enter_context(keys_served(own, known, "own"))
        stack.enter_context(keys_served(other, unknown, "other"))
        door = Door(folder, small_plan(key_sets))
        door.places = replace(door.places, trusted=str(known))
        door.policy.answer = lambda handler, _: reply(handler, 200, headers={door_headers.TARGET: "one"})
        yield stack.enter_context(door.running())


def status(door: Door, bearer: str) -> int:
    return door.ask("POST", CHAT, {"model": "m"}, {"authorization": f"Bearer {bearer}"}).status


def test_keys_are_fetched_from_the_issuer(door: Door) -> None:
    door.wait_until(lambda: status(door, token()) == 200)
    assert status(door, token("other")) == 401


def test_keys_of_a_server_that_cannot_be_checked_count_for_nothing(door: Door) -> None:
    """Red if whoever answers in place of an issuer can sign tokens."""
    door.wait_until(lambda: door.counter("cluster.issuer-1.ssl.fail_verify_error") > 0)
    assert status(door, token("other", iss=_OTHER)) == 401
    assert status(door, token()) == 200
