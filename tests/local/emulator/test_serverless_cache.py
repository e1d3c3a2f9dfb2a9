"""A stack's cache is a Valkey that lets users in with tokens; it goes with its stack."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference_local.emulator.emulator import Emulator
from signals.connection import BULK_TIMEOUTS, Address, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter, Written
from signals.store_errors import StoreRefusedError, StoreUnreachableError
from tests.local.emulator.conftest import REGION, Resources, StackEnd
from tests.local.emulator.test_process import _wait_until_gone
from tests.runtime.signals.instants import EXPIRES, WRITTEN

SIGNAL = SignalRecord("intent", "shopper-1", "shoes", 5, "qwen", "abc", WRITTEN, EXPIRES)
CONNECT = "on ~signal:* -@all +cluster|slots +command +ping"


def resources(writer_access: str = "+hget +hset +eval +evalsha +expireat") -> Resources:
    def user(name: str, access: str) -> tuple[str, dict[str, Any]]:
        return "AWS::ElastiCache::User", {
            "Engine": "valkey",
            "UserId": name,
            "UserName": name,
            "AccessString": f"{CONNECT} {access}",
            "AuthenticationMode": {"Type": "iam"},
        }

    return {
        "Reader": user("cached-reader", "+hget"),
        "Writer": user("cached-writer", writer_access),
        "Stranger": user("stranger", "+hget"),
        "Users": (
            "AWS::ElastiCache::UserGroup",
            {"Engine": "valkey", "UserGroupId": "users", "UserIds": [{"Ref": "Reader"}, {"Ref": "Writer"}]},
        ),
        "Cache": (
            "AWS::ElastiCache::ServerlessCache",
            {"Engine": "valkey", "ServerlessCacheName": "cached", "UserGroupId": {"Ref": "Users"}},
        ),
        "Port": (
            "AWS::SSM::Parameter",
            {"Name": "cache-port", "Type": "String", "Value": {"Fn::GetAtt": ["Cache", "Endpoint.Port"]}},
        ),
    }


@pytest.fixture
def address(
    emulator: Emulator,
    client: Callable[[str], Any],
    apply_stack: Callable[[str, Resources], StackEnd],
    monkeypatch: pytest.MonkeyPatch,
) -> Address:
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)
    assert apply_stack("cached", resources()) == StackEnd("CREATE_COMPLETE", ())
    port = client("ssm").get_parameter(Name="cache-port")["Parameter"]["Value"]
    authority = str(emulator.cache_authority)
    return Address("127.0.0.1", int(port), "cached", "cached-reader", REGION, authority)


def test_users_come_in_with_their_rights_as_they_are_then(
    address: Address,
    client: Callable[[str], Any],
    apply_stack: Callable[[str, Resources], StackEnd],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def store(**changes: Any) -> SignalWriter:
        return SignalWriter(open_client(replace(address, **changes), BULK_TIMEOUTS))

    with store() as reader, store(user="cached-writer") as writer:
        assert writer.write([SIGNAL]) == Written(1, 0)
        assert reader.get("intent", "shopper-1") == SIGNAL
        with pytest.raises(StoreRefusedError, match="no permissions"):
            reader.write([SIGNAL])
    for wrong in ({"user": "stranger"}, {"cache": "another"}):
        with pytest.raises(StoreRefusedError):
            store(**wrong)
    assert apply_stack("cached", resources("+hget")).status == "UPDATE_COMPLETE"
    with store(user="cached-writer") as writer, pytest.raises(StoreRefusedError, match="no permissions"):
        writer.write([SIGNAL])
    with store() as reader:
        assert reader.get("intent", "shopper-1") == SIGNAL
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(StoreRefusedError):
        store()
    client("cloudformation").delete_stack(StackName="cached")
    client("cloudformation").get_waiter("stack_delete_complete").wait(
        StackName="cached", WaiterConfig={"Delay": 1}
    )
    with pytest.raises(StoreUnreachableError):
        store()


def test_a_cache_listens_on_loopback_alone_and_dies_with_the_emulator(tmp_path: Path) -> None:
    template = {
        "Resources": {
            name: {"Type": kind, "Properties": properties} for name, (kind, properties) in resources().items()
        }
    }
    with Emulator(tmp_path, region=REGION) as emulator:
        cloudformation = emulator.client("cloudformation")
        cloudformation.create_stack(StackName="cached", TemplateBody=json.dumps(template))
        cloudformation.get_waiter("stack_create_complete").wait(StackName="cached", WaiterConfig={"Delay": 1})
        [server] = [
            process
            for process in psutil.Process(emulator.pid).children(recursive=True)
            if "valkey-server" in process.name()
        ]
        listening = [each for each in server.net_connections() if each.status == psutil.CONN_LISTEN]
        assert {each.laddr.ip for each in listening} == {"127.0.0.1"}
        os.kill(emulator.pid, signal.SIGKILL)
        _wait_until_gone(server.pid)
