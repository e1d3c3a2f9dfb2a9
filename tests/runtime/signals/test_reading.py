"""A read costs one round trip, many cost one too, and what is not there or unreadable is said.

With the servers of `client` that have `pytest.mark.clock`, they belong to that suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from valkey.connection import AbstractConnection

from signals.connection import BULK_TIMEOUTS, Address
from signals.reading import SignalReader, open_reader
from signals.record import InvalidSignalError, SignalRecord, storage_key
from signals.store import SignalWriter
from signals.store_errors import StoreUnreachableError
from tests.runtime.signals.instants import EXPIRES, WRITTEN
from tests.runtime.signals.memory_server import MemoryServer

SIGNAL = SignalRecord("intent", "shopper-1", "shoes", 5, "qwen", "abc", WRITTEN, EXPIRES)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Whatever clients send from now on: an entry is what an answer is waited for after."""
    entries: list[object] = []
    plain: Callable[..., Any] = AbstractConnection.send_packed_command

    def send(self: Any, command: Any, *arguments: Any, **options: Any) -> Any:
        entries.append(command)
        return plain(self, command, *arguments, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", send)
    return entries


def test_a_read_is_one_round_trip(client: Any, sent: list[object]) -> None:
    reader = SignalReader(client)
    SignalWriter(client).write([SIGNAL])
    reader.get("intent", "shopper-1")
    sent.clear()
    assert reader.get("intent", "shopper-1") == SIGNAL
    assert reader.get("intent", "shopper-2") is None
    assert len(sent) == 2


def test_many_reads_are_one_round_trip_to_each_server(
    client: Any, sent: list[object], request: pytest.FixtureRequest
) -> None:
    servers = 2 if "cluster" in request.node.callspec.id else 1
    written = {f"shopper-{each}": replace(SIGNAL, key=f"shopper-{each}") for each in range(300)}
    SignalWriter(client).write(written.values())
    reader = SignalReader(client)
    keys = [*written, "nobody"]
    assert reader.get_many("intent", keys) == written
    sent.clear()
    assert reader.get_many("intent", keys) == written
    assert len(sent) == servers


def test_thousands_of_reads_are_a_round_trip_a_thousand(memory: MemoryServer, sent: list[object]) -> None:
    with open_reader(Address("127.0.0.1", memory.port), BULK_TIMEOUTS) as reader:
        reader.get("intent", "shopper-1")
        sent.clear()
        assert reader.get_many("nothing", [str(each) for each in range(2500)]) == {}
        assert len(sent) == 3
        assert reader.get_many("nothing", []) == {}
        assert len(sent) == 3


@pytest.mark.parametrize("name", ["intent:x", "Intent", ""])
def test_a_name_does_not_reach_into_another_s_keys(client: Any, name: str) -> None:
    SignalWriter(client).write([replace(SIGNAL, key="x:y")])
    for read in (
        lambda: SignalReader(client).get(name, "y"),
        lambda: SignalReader(client).get_many(name, "y"),
    ):
        with pytest.raises(InvalidSignalError, match="name: must match"):
            read()


@pytest.mark.parametrize("record", ["", "{}", "[1]", '{"value": 1}', "no JSON"])
def test_what_is_no_signal_is_said(client: Any, record: str) -> None:
    client.hset(storage_key("intent", "shopper-1"), "d", record)
    with pytest.raises(InvalidSignalError, match="record of intent, shopper-1: cannot be read"):
        SignalReader(client).get("intent", "shopper-1")


def test_a_store_that_is_not_there_is_said() -> None:
    with pytest.raises(StoreUnreachableError):
        open_reader(Address("127.0.0.1", 1)).get("intent", "shopper-1")
