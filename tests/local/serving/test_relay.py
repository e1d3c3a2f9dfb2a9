"""The relay as a program between real sockets."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from inference_blueprints.local.processes import ProcessGroup
from inference_blueprints.local.serving.entrance import open_entrance
from inference_blueprints.local.serving.relay import Route

_TIMEOUT = 20.0
# After this head the relay no longer looks at what passes.
_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def _read(connection: socket.socket, count: int) -> bytes:
    """Read so many bytes, or fewer when the other side ends."""
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


class _Relayed:
    """Targets behind one relayed port."""

    def __init__(self, directory: Path, weights: list[float], resources: ExitStack) -> None:
        self._resources = resources
        group = resources.enter_context(ProcessGroup(grace_seconds=1))
        self.targets = [self._keep(socket.create_server(("127.0.0.1", 0))) for _ in weights]
        ports = [target.getsockname()[1] for target in self.targets]
        ways = open_entrance(
            {"way": Route(tuple(zip(ports, weights, strict=True)), answer_tokens=10)},
            lambda command, sockets: group.start(
                "relay", command, environment=os.environ, log_path=directory / "log", pass_fds=sockets
            ),
        )
        self._port = ways["way"]
        self.check = group.check

    def connect(self) -> socket.socket:
        return self._keep(socket.create_connection(("127.0.0.1", self._port)))

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a connection through the relay, to its first target."""
        client = self.connect()
        client.sendall(_HEAD)
        server = self._keep(self.targets[0].accept()[0])
        assert _read(server, len(_HEAD)) == _HEAD
        return client, server

    def _keep(self, connection: socket.socket) -> socket.socket:
        connection.settimeout(_TIMEOUT)
        return self._resources.enter_context(closing(connection))


@pytest.fixture
def relayed_to(tmp_path: Path) -> Iterator[Callable[..., _Relayed]]:
    with ExitStack() as resources:
        yield lambda *weights: _Relayed(tmp_path, list(weights), resources)


def test_both_directions_pass_at_once(relayed_to) -> None:
    client, server = relayed_to(1.0).pair()
    data = os.urandom(3_000_000)
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    server.sendall(b"answer before the question is over")
    assert _read(client, 6) == b"answer"
    assert _read(server, len(data)) == data
    sender.join()


def test_an_answer_still_comes_after_the_client_has_ended_its_side(relayed_to) -> None:
    client, server = relayed_to(1.0).pair()
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b""
    server.sendall(b"late answer")
    server.close()
    assert _read(client, 100) == b"late answer"


def test_a_client_that_breaks_off_is_known_to_the_target(relayed_to) -> None:
    client, server = relayed_to(1.0).pair()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by reset
    client.close()
    with pytest.raises(ConnectionError):  # noqa: PT012 - which of the writes fails is the kernel's business
        while True:
            server.sendall(b"x" * 65536)


def test_a_target_that_dies_ends_the_clients_connection(relayed_to) -> None:
    client, server = relayed_to(1.0).pair()
    server.close()
    assert client.recv(1) == b""


def test_a_slow_client_slows_the_target_and_does_not_fill_the_memory(relayed_to) -> None:
    _, server = relayed_to(1.0).pair()
    server.settimeout(1.0)
    with pytest.raises(TimeoutError):  # far below this much the buffers on the way are full
        server.sendall(b"x" * 500_000_000)


def test_connections_are_spread_by_weight(relayed_to) -> None:
    relayed = relayed_to(1.0, 3.0)
    for _ in range(8):
        relayed.connect()
    first, second = relayed.targets
    for target, count in ((first, 2), (second, 6)):
        for _ in range(count):
            target.accept()[0].close()


def test_nobody_behind_it_closes_the_connection_and_the_relay_goes_on(relayed_to) -> None:
    relayed = relayed_to(1.0)
    relayed.targets[0].close()
    for _ in range(3):
        assert relayed.connect().recv(1) == b""
    relayed.check()
