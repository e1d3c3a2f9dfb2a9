"""Whatever happens to the server: nothing older wins, and what was said to be written is there."""

from __future__ import annotations

import os
import signal as system_signals
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from valkey.connection import AbstractConnection

from signals.connection import BULK_TIMEOUTS, INTERACTIVE_TIMEOUTS, open_client
from signals.reading import SignalReader, open_reader
from signals.record import SignalRecord
from signals.store import SignalWriter, Written
from signals.store_errors import StoreError, StoreUnreachableError
from tests.runtime.signals.conftest import Cache
from tests.runtime.signals.instants import EXPIRES, WRITTEN

SIGNAL = SignalRecord("intent", "shopper-1", "shoes", 5, "qwen", "abc", WRITTEN, EXPIRES)
EARLIER, LATER = 1, 9
#: A reader's, but for a machine that has more to do.
BRIEF = replace(INTERACTIVE_TIMEOUTS, connect_seconds=5.0, answer_seconds=1.0)


@pytest.fixture
def cache(own_cache: Cache) -> Cache:
    """A cache of the test's own, for it is stopped and killed."""
    return own_cache


def load(store: SignalWriter, signals: list[SignalRecord]) -> Written:
    """Write until it is done, as a step of a state machine that is tried again."""
    while True:
        try:
            return store.write(signals)
        except StoreError:
            continue


def read(reader: SignalReader, key: str) -> SignalRecord | None:
    """Read until the server answers: a reader tries again once only."""
    while True:
        try:
            return reader.get("intent", key)
        except StoreUnreachableError:
            time.sleep(0.05)


def wait_for_keys(cache: Cache, count: int) -> None:
    with cache.server.client() as own:
        while own.dbsize() < count:
            time.sleep(0.01)


@pytest.mark.faults
@pytest.mark.parametrize("kills", [1, 3])
def test_loads_go_on_after_their_server_was_killed(cache: Cache, kills: int) -> None:
    count = 30_000
    keys = [f"shopper-{number}" for number in range(count)]
    loaded = [replace(SIGNAL, key=key) for key in keys]
    # A third holds what a later job said, a third what an earlier one did, a third nothing.
    later = [replace(SIGNAL, key=key, version=LATER, value="later") for key in keys[::3]]
    earlier = [replace(SIGNAL, key=key, version=EARLIER, value="earlier") for key in keys[1::3]]
    expected = {key: "later" if index % 3 == 0 else "shoes" for index, key in enumerate(keys)}
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        load(store, [*later, *earlier])
        with ThreadPoolExecutor() as threads:
            running = [threads.submit(load, store, each) for each in (loaded, loaded[::-1])]
            for kill in range(kills):
                wait_for_keys(cache, count * 2 // 3 + (kill + 1) * count // 3 // (kills + 1))
                cache.restart()
            for each in running:
                each.result()
        assert {key: found.value for key, found in store.get_many("intent", keys).items()} == expected
        assert load(store, loaded) == Written(0, count)


@pytest.mark.clock
def test_a_read_goes_on_after_its_server_was_killed(cache: Cache) -> None:
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        load(store, [SIGNAL])
    with open_reader(cache.address, BRIEF) as reader:
        assert read(reader, "shopper-1") == SIGNAL
        cache.server.kill()
        with pytest.raises(StoreUnreachableError):
            reader.get("intent", "shopper-1")
        cache.start()
        assert read(reader, "shopper-1") == SIGNAL


def one(reader: SignalReader) -> SignalRecord | None:
    return reader.get("intent", "shopper-1")


def many(reader: SignalReader) -> SignalRecord | None:
    return reader.get_many("intent", ["shopper-1"]).get("shopper-1")


@pytest.mark.clock
@pytest.mark.parametrize("read_signal", [one, many])
def test_a_connection_that_ends_before_the_answer_is_made_again(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, read_signal: Callable[[SignalReader], SignalRecord | None]
) -> None:
    plain: Callable[..., Any] = AbstractConnection.send_packed_command
    ended: list[AbstractConnection] = []

    def send(self: AbstractConnection, *arguments: object, **options: object) -> None:
        plain(self, *arguments, **options)
        if not ended:
            ended.append(self)
            cache.front.end_connections()
            os.kill(cache.server.pid, system_signals.SIGCONT)

    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        load(store, [SIGNAL])
        os.kill(cache.server.pid, system_signals.SIGSTOP)
        monkeypatch.setattr(AbstractConnection, "send_packed_command", send)
        assert read_signal(store) == SIGNAL
        assert ended


@pytest.mark.clock
def test_a_server_that_hangs_is_not_waited_for_and_its_late_answer_is_nobody_else_s(cache: Cache) -> None:
    other = replace(SIGNAL, key="shopper-2", value="socks")
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        load(store, [SIGNAL, other])
    with open_reader(cache.address, BRIEF) as reader:
        assert read(reader, "shopper-1") == SIGNAL
        os.kill(cache.server.pid, system_signals.SIGSTOP)
        try:
            with pytest.raises(StoreUnreachableError):
                reader.get("intent", "shopper-1")
        finally:
            os.kill(cache.server.pid, system_signals.SIGCONT)
        assert read(reader, "shopper-2") == other


@pytest.mark.clock
def test_what_expires_is_gone_at_its_time(cache: Cache) -> None:
    expires = int(time.time()) + 2
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        load(store, [replace(SIGNAL, expires=expires), replace(SIGNAL, key="shopper-2")])
        while store.get("intent", "shopper-1") is not None:
            time.sleep(0.05)
        assert time.time() >= expires
        assert list(store.get_many("intent", ["shopper-1", "shopper-2"])) == ["shopper-2"]
        # Nothing is left that an earlier version could lose against.
        again = replace(SIGNAL, version=EARLIER)
        load(store, [again])
        assert store.get("intent", "shopper-1") == again
