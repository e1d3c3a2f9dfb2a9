"""The users that the stack makes may do what reading and writing need, and nothing more, on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import valkey
from valkey.exceptions import NoPermissionError

from inference_constructs.signals.signal_cache import READER_ACCESS, WRITER_ACCESS
from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer
from signals.reading import SignalReader
from signals.store import SignalWriter, Written
from signals.store_errors import StoreRefusedError
from tests.runtime.signals.test_store import SIGNAL

pytestmark = pytest.mark.clock

As = Callable[[str], Any]


@pytest.fixture(params=["one server", "cluster"])
def as_user(
    request: pytest.FixtureRequest, server: ValkeyServer, cluster: list[ValkeyServer]
) -> Iterator[As]:
    """Connect as a user, with the commands that each kind of client begins with."""
    is_cluster = request.param == "cluster"
    servers = cluster if is_cluster else [server]
    for each in servers:
        with each.client() as client:
            client.flushall()
            for user, access in (("reader", READER_ACCESS), ("writer", WRITER_ACCESS)):
                client.execute_command("ACL", "SETUSER", user, "reset", "nopass", *access.split())
    opened: list[Any] = []

    def connect(user: str) -> Any:
        kind: Any = valkey.ValkeyCluster if is_cluster else valkey.Valkey
        opened.append(kind(host=LOOPBACK, port=servers[0].port, username=user, password=user))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()
    for each in servers:
        with each.client() as client:
            client.execute_command("ACL", "DELUSER", "reader", "writer")


def test_the_writer_writes_and_the_reader_reads(as_user: As) -> None:
    assert SignalWriter(as_user("writer")).write([SIGNAL]) == Written(1, 0)
    assert SignalReader(as_user("reader")).get(SIGNAL.name, SIGNAL.key) == SIGNAL


def test_the_reader_writes_nothing(as_user: As) -> None:
    with pytest.raises(StoreRefusedError):
        SignalWriter(as_user("reader")).write([SIGNAL])
    assert SignalReader(as_user("reader")).get(SIGNAL.name, SIGNAL.key) is None


@pytest.mark.parametrize("user", ["reader", "writer"])
@pytest.mark.parametrize(
    "command",
    [
        ["HGET", "other:key", "d"],
        ["HSET", "other:key", "d", "x"],
        ["DEL", "signal:intent:shopper-1"],
        ["KEYS", "signal:*"],
        ["FLUSHALL"],
        ["CONFIG", "GET", "*"],
        ["ACL", "LIST"],
    ],
)
def test_neither_lists_deletes_or_looks_elsewhere(as_user: As, user: str, command: list[str]) -> None:
    client = as_user(user)
    options = {"target_nodes": "random"} if isinstance(client, valkey.ValkeyCluster) else {}
    with pytest.raises(NoPermissionError):
        client.execute_command(*command, **options)
