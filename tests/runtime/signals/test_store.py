"""An older version never wins, whoever writes when; what has expired is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import valkey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from signals import store
from signals.record import InvalidSignalError, SignalRecord, storage_key
from signals.store import SignalWriter, Written
from signals.store_errors import StoreError
from tests.runtime.signals.instants import EXPIRED, EXPIRES, WRITTEN

SIGNAL = SignalRecord(
    name="intent",
    key="shopper-1",
    value='wants "shoes" \u2028 Ä',
    version=5,
    model="qwen",
    prompt_hash="abc",
    time=WRITTEN,
    expires=EXPIRES,
)


def test_what_is_written_is_read(client: Any) -> None:
    signals = SignalWriter(client)
    assert signals.write([SIGNAL]) == Written(1, 0)
    assert signals.get("intent", "shopper-1") == SIGNAL
    assert signals.get("intent", "shopper-2") is None
    assert signals.get("other", "shopper-1") is None
    assert signals.get_many("intent", ["shopper-2", "shopper-1"]) == {"shopper-1": SIGNAL}


def test_writing_again_changes_nothing(client: Any) -> None:
    signals = SignalWriter(client)
    signals.write([SIGNAL])
    assert signals.write([SIGNAL, replace(SIGNAL, value="a second answer")]) == Written(0, 2)
    assert signals.get("intent", "shopper-1") == SIGNAL


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2**53 - 1)), min_size=1, max_size=30))
def test_the_highest_version_stays_in_whatever_order(client: Any, writes: list[tuple[str, int]]) -> None:
    client.flushall()
    signals = SignalWriter(client)
    for key, version in writes:
        signals.write([replace(SIGNAL, key=key, version=version, value=str(version))])
    for key in {key for key, _ in writes}:
        highest = max(version for written, version in writes if written == key)
        found = signals.get("intent", key)
        assert found is not None
        assert (found.version, found.value) == (highest, str(highest))


versions = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=15)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(versions, versions, st.randoms(use_true_random=False))
def test_two_writers_in_any_order_leave_one_whole_record_of_the_highest_version(
    client: Any, first: list[tuple[str, int]], second: list[tuple[str, int]], chance: Random
) -> None:
    client.flushall()
    writers = {"first": list(first), "second": list(second)}
    expected: dict[str, SignalRecord] = {}
    while any(writers.values()):
        writer = chance.choice([name for name, left in writers.items() if left])
        size = chance.randint(1, len(writers[writer]))
        group, writers[writer] = writers[writer][:size], writers[writer][size:]
        signals = [
            replace(SIGNAL, key=key, version=version, value=writer, expires=EXPIRES + version)
            for key, version in group
        ]
        SignalWriter(client).write(signals)
        for signal in signals:
            if signal.key not in expected or expected[signal.key].version < signal.version:
                expected[signal.key] = signal
    assert SignalWriter(client).get_many("intent", ["a", "b", "c"]) == expected
    for signal in expected.values():
        assert client.expiretime(storage_key("intent", signal.key)) == signal.expires


@pytest.mark.clock
def test_writers_at_the_same_time_leave_the_highest_version(server: ValkeyServer) -> None:
    client = valkey.Valkey(host="127.0.0.1", port=server.port)
    client.flushall()

    def write(start: int) -> None:
        SignalWriter(valkey.Valkey(host="127.0.0.1", port=server.port)).write(
            replace(SIGNAL, key=str(number % 7), version=number) for number in range(start, 4000, 4)
        )

    threads = [threading.Thread(target=write, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    signals = SignalWriter(client)
    for key in range(7):
        found = signals.get("intent", str(key))
        assert found is not None
        assert found.version == max(number for number in range(4000) if number % 7 == key)


def test_what_has_expired_is_gone_and_a_newer_version_lives_on(client: Any) -> None:
    signals = SignalWriter(client)
    signals.write([replace(SIGNAL, expires=EXPIRED)])
    assert signals.get("intent", "shopper-1") is None
    signals.write([SIGNAL])
    assert client.expiretime(storage_key("intent", "shopper-1")) == SIGNAL.expires


def test_more_than_a_pipeline_holds_is_written_whole(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PIPELINE_SIZE", 7)
    many = [replace(SIGNAL, key=f"shopper-{number}") for number in range(50)]
    assert SignalWriter(client).write(iter(many)) == Written(50, 0)
    assert len(SignalWriter(client).get_many("intent", [each.key for each in many])) == 50


def test_a_server_that_forgets_the_script_is_told_it_again(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PIPELINE_SIZE", 10)

    def forgetting() -> Iterator[SignalRecord]:
        for number in range(40):
            if number % 15 == 0:
                client.script_flush()
            yield replace(SIGNAL, key=f"shopper-{number}")

    assert SignalWriter(client).write(forgetting()) == Written(40, 0)
    assert SignalWriter(client).write(forgetting()) == Written(0, 40)


def test_another_error_of_the_server_is_the_caller_s(client: Any) -> None:
    client.set(storage_key("intent", "shopper-3"), "no hash")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        SignalWriter(client).write([replace(SIGNAL, key=f"shopper-{number}") for number in range(5)])
    assert len(SignalWriter(client).get_many("intent", ["shopper-2", "shopper-4"])) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Intent"}, "name: must match"),
        ({"name": "a:b"}, "name: must match"),
        ({"key": ""}, "key: must have 1 to 1024 bytes; got 0"),
        ({"key": "Ä" * 600}, "key: must have 1 to 1024 bytes; got 1200"),
        ({"version": -1}, "version: must be 0 to below"),
        ({"version": 2**53}, "version: must be 0 to below"),
    ],
)
def test_what_the_store_could_not_give_back_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSignalError, match=message):
        replace(SIGNAL, **changes)
