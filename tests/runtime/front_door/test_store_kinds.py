"""The store in cluster mode, and as ElastiCache Serverless presents it: TLS, IAM tokens, few rights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from inference_constructs.front_door.ledger_cache import DOOR_ACCESS
from inference_contracts.door_configuration import DoorBudget
from inference_local.control_plane.certificates import Authority
from inference_local.emulator.serverless_cache.front import Front, TokenCheck
from inference_local.emulator.serverless_cache.valkey_server import SLOTS, ValkeyServer
from tests.runtime.front_door.conftest import Platform, StartPolicy
from tests.runtime.front_door.policy_process import a_configuration, wait_for
from tests.runtime.front_door.race_clients import COST
from tests.runtime.front_door.test_policy_process import MOST

pytestmark = pytest.mark.clock

LOOPBACK, USER = "127.0.0.1", "door"
#: A team's counters lie in slot 11925 and the model's in 11219: here on different servers.
FIRST_OF_SECOND = 11_500
BUDGETS = (
    DoorBudget("team", "red", nano_per_day=3 * MOST),
    DoorBudget("model", "m", nano_per_day=2 * MOST, requests_per_minute=100),
)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[ValkeyServer]]:
    """Two servers that share the slots."""
    settings = {"cluster-enabled": "yes", "cluster-node-timeout": "600000"}
    running = [ValkeyServer(tmp_path / name, settings) for name in ("first", "second")]
    for server in running:
        server.start()
    clients = [server.client() for server in running]
    ranges = ((0, FIRST_OF_SECOND - 1), (FIRST_OF_SECOND, SLOTS - 1))
    for client, slots in zip(clients, ranges, strict=True):
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
    bus = clients[1].config_get("cluster-port")["cluster-port"]
    clients[0].execute_command("CLUSTER", "MEET", LOOPBACK, running[1].port, bus)
    for client in clients:
        wait_for(partial(_is_whole, client))
    yield running
    for server in running:
        server.kill()


def _is_whole(client: Any) -> bool:
    return b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO")


def test_in_a_cluster_each_slot_is_asked_at_its_server(
    platform: Platform, start_policy: StartPolicy, servers: list[ValkeyServer], tmp_path: Path
) -> None:
    """Red if a script mixes slots, if a moved slot is not followed, or a refusal keeps what it reserved."""
    settings = {"store_port": servers[0].port, "store_cluster": True}
    policy = start_policy("one", a_configuration(*BUDGETS), **settings)
    key = platform.known_key("red", policy)
    admitted = policy.ask(key)
    assert [admitted.status, policy.ask(key).status] == [200, 200]
    refused = policy.ask(key)
    assert refused.status == 429
    assert b"budget of the model 'm'" in refused.body
    with servers[0].client() as first, servers[1].client() as second:
        counters = [first.hget("door:{/m}", "R"), second.hget("door:{red}", "R")]
    # The team's part of the refused request was given back.
    assert [int(each) for each in counters] == [2 * MOST, 2 * MOST]
    policy.log(admitted)
    wait_for(lambda: policy.metric("settled_total") == 1)
    with servers[0].client() as first:
        assert int(first.hget("door:{/m}", "D")) == COST


def test_a_serverless_cache_is_used_with_tls_a_token_and_few_rights(
    platform: Platform, start_policy: StartPolicy, tmp_path: Path
) -> None:
    """Red if the host name is not checked, the token is wrong, or a script needs other rights."""
    authority = Authority(tmp_path / "authority")
    check = TokenCheck("ledger", {"AKIAIOSFODNN7EXAMPLE": "secret"}.get)
    with Front(authority.issue("cache"), check.is_valid) as front:
        announced = {"cluster-announce-ip": LOOPBACK, "cluster-announce-port": str(front.port)}
        server = ValkeyServer(tmp_path / "server", {"cluster-enabled": "yes", **announced})
        server.start()
        server.take_all_slots()
        with server.client() as client:
            client.execute_command("ACL", "SETUSER", USER, "nopass", *DOOR_ACCESS.split())
        front.behind = server.port
        settings = platform.settings()
        environment = {
            **settings["environment"],
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        environment.pop("AWS_SESSION_TOKEN", None)
        settings |= {
            "environment": environment,
            "store_port": front.port,
            "store_cache": "ledger",
            "store_user": USER,
            "store_authority": str(authority.certificate),
        }
        policy = start_policy("one", a_configuration(*BUDGETS), **settings)
        key = platform.known_key("red", policy)
        admitted = policy.ask(key)
        assert admitted.status == 200
        policy.log(admitted)
        wait_for(lambda: policy.metric("settled_total") == 1)
        with server.client() as client:
            assert int(client.hget("door:{red}", "D")) == COST
        server.kill()
