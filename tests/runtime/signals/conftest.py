"""A server in this process, and real ones: one, a cluster of two, and one behind the ElastiCache proxy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import valkey

from inference_local.control_plane.certificates import Authority
from inference_local.emulator.serverless_cache.front import Front, TokenCheck
from inference_local.emulator.serverless_cache.valkey_server import SLOTS, ValkeyServer
from signals.connection import Address
from tests.runtime.signals.memory_server import MemoryServer, memory_server

LOOPBACK = "127.0.0.1"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "secret"
_CONNECT = "on nopass ~signal:* -@all +cluster|slots +cluster|nodes +command +readonly +ping"
#: The permissions that reading and writing need.
RIGHTS = {"reader": f"{_CONNECT} +hget", "writer": f"{_CONNECT} +eval +evalsha +hget +hset +expireat"}


@dataclass
class Cache:
    """A cache with the interface of ElastiCache."""

    server: ValkeyServer
    front: Front
    address: Address
    check: TokenCheck
    tokens: list[str] = field(default_factory=list)
    """Received tokens, in order."""

    def restart(self) -> None:
        """Kill the server and start it again with the same address."""
        self.server.kill()
        self.start()

    def start(self) -> None:
        self.server.start()
        self.server.take_all_slots()
        with self.server.client() as client:
            for user, rights in RIGHTS.items():
                client.execute_command("ACL", "SETUSER", user, *rights.split())
        self.front.behind = self.server.port


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def server(shared_server: ValkeyServer) -> ValkeyServer:
    """An empty server, shared with other tests."""
    with shared_server.client() as client:
        client.flushall()
    return shared_server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ValkeyServer]]:
    """Two servers that share the keys, with a long timeout between them."""
    settings = {"cluster-enabled": "yes", "cluster-node-timeout": "600000"}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ValkeyServer(tmp_path_factory.mktemp("cluster"), settings)) for _ in range(2)
        ]
        clients = [stack.enter_context(each.client()) for each in servers]
        for index, client in enumerate(clients):
            first = index * SLOTS // 2
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, first + SLOTS // 2 - 1)
        bus = clients[1].config_get("cluster-port")["cluster-port"]
        clients[0].execute_command("CLUSTER", "MEET", LOOPBACK, servers[1].port, bus)
        for client in clients:
            while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
                time.sleep(0.05)
        yield servers


@pytest.fixture(scope="session")
def shared_memory() -> Iterator[MemoryServer]:
    with memory_server() as started:
        yield started


@pytest.fixture
def memory(shared_memory: MemoryServer) -> MemoryServer:
    """An empty server in this process."""
    shared_memory.answer(b"FLUSHALL", [])
    return shared_memory


@pytest.fixture(
    params=[
        "memory",
        pytest.param("one server", marks=pytest.mark.clock),
        pytest.param("cluster", marks=pytest.mark.clock),
    ]
)
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "cluster":
        port = request.getfixturevalue("cluster")[0].port
        opened: Any = valkey.ValkeyCluster(host=LOOPBACK, port=port)
    else:
        name = "memory" if request.param == "memory" else "server"
        opened = valkey.Valkey(host=LOOPBACK, port=request.getfixturevalue(name).port)
    opened.flushall()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/of+a=role")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")


@contextmanager
def open_cache(authority: Authority, directory: Path) -> Iterator[Cache]:
    """Start a cache that keeps its data when it is killed."""
    tokens: list[str] = []
    check = TokenCheck("signals", {KEY: SECRET}.get)

    def admits(user: str, token: str) -> bool:
        tokens.append(token)
        return check.is_valid(user, token)

    with Front(authority.issue("cache"), admits) as front:
        settings = {
            "cluster-enabled": "yes",
            "cluster-announce-ip": LOOPBACK,
            "cluster-announce-port": str(front.port),
            "appendonly": "yes",
            "appendfsync": "always",
        }
        server = ValkeyServer(directory, settings)
        address = Address(LOOPBACK, front.port, "signals", "reader", authority=str(authority.certificate))
        running = Cache(server, front, address, check, tokens)
        try:
            running.start()
            yield running
        finally:
            server.kill()


@pytest.fixture(scope="session")
def shared_cache(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    with open_cache(authority, tmp_path_factory.mktemp("cache")) as running:
        yield running


@pytest.fixture
def cache(shared_cache: Cache, credentials: None) -> Cache:
    """An empty cache, shared with other tests."""
    with shared_cache.server.client() as client:
        client.flushall()
    shared_cache.tokens.clear()
    return shared_cache


@pytest.fixture
def own_cache(authority: Authority, credentials: None, tmp_path: Path) -> Iterator[Cache]:
    """A cache that may be killed."""
    with open_cache(authority, tmp_path / "cache") as running:
        yield running
