"""The signal store: a versioned write compared with a plain one, and bulk reads compared with single reads.

One real Valkey in cluster mode runs on this machine, with one client in one thread and signals of a few
hundred bytes. Each figure is the time per signal. It includes loopback but no other network time.

`_write` writes signals in pipelines, each newer than the stored one. The baseline writes the same records
with `HSET`, in pipelines of the same length and with the same client, without checking versions. The goal is
at least half its speed. `_get` is one read compared with the client's own `HGET`. `_get_many` is one of a
thousand reads compared with a single read.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import valkey

from benchmarks.harness.figure import ROOT, BenchmarkError, Figure, interleaved_medians
from inference_contracts.units import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY
from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer

sys.path.append(str(ROOT / "runtime"))

from signals.reading import PIPELINE_SIZE
from signals.record import SignalRecord, storage_key
from signals.store import SignalWriter

_LOADED, _READ, _ROUNDS = 50_000, 2_000, 5
_GOAL_WRITE, _GOAL_GET, _GOAL_GET_MANY = 2.0, 2.0, 0.5
_VALUE = (
    '{"intent": "running shoes", "size": 43, "confidence": 0.93, "because": "looked at four pairs today"}'
)
_NAME, _PLAIN = "intent", "plain"


def measure() -> list[Figure]:
    """Take the measurements."""
    with tempfile.TemporaryDirectory() as directory:
        server = ValkeyServer(Path(directory), {"cluster-enabled": "yes"})
        with server:
            server.take_all_slots()
            with valkey.ValkeyCluster(host=LOOPBACK, port=server.port) as client:
                return [*_writes(client), *_reads(client)]


def _writes(client: Any) -> Iterator[Figure]:
    store = SignalWriter(client)
    versions = iter(range(1, _ROUNDS + 1))

    def versioned() -> None:
        written = store.write(_signals(_NAME, next(versions)))
        if written.written != _LOADED:
            raise BenchmarkError(f"{written.superseded} of {_LOADED} signals lost to older ones")

    def plain() -> None:
        signals = list(_signals(_PLAIN, 0))
        for start in range(0, _LOADED, PIPELINE_SIZE):
            pipeline = client.pipeline(transaction=False)
            for each in signals[start : start + PIPELINE_SIZE]:
                fields = {"v": each.version, "d": each.to_json()}
                pipeline.hset(storage_key(each.name, each.key), mapping=fields)
            pipeline.execute()

    ours, baseline = interleaved_medians([_timed(versioned, _LOADED), _timed(plain, _LOADED)], _ROUNDS)
    yield Figure("signal_store_write", ours, "us", baseline=baseline, goal=_GOAL_WRITE)


def _reads(client: Any) -> Iterator[Figure]:
    store = SignalWriter(client)
    keys = [_key(number) for number in range(_READ)]

    def many() -> None:
        if len(store.get_many(_NAME, keys)) != _READ:
            raise BenchmarkError("signals are missing")

    def single() -> None:
        for key in keys:
            store.get(_NAME, key)

    def bare() -> None:
        for key in keys:
            client.hget(storage_key(_NAME, key), "d")

    measures = [_timed(each, _READ) for each in (many, single, bare)]
    of_many, one, of_client = interleaved_medians(measures, _ROUNDS)
    yield Figure("signal_store_get", one, "us", baseline=of_client, goal=_GOAL_GET)
    yield Figure("signal_store_get_many", of_many, "us", baseline=one, goal=_GOAL_GET_MANY)


def _signals(name: str, version: int) -> Iterator[SignalRecord]:
    """Iterate over the signals to load."""
    now = int(time.time())
    for number in range(_LOADED):
        yield SignalRecord(
            name, _key(number), _VALUE, version, "qwen3-8b", "ab" * 16, now, now + SECONDS_PER_DAY
        )


def _key(number: int) -> str:
    return f"shopper-{number:09}"


def _timed(work: Callable[[], None], count: int) -> Callable[[], float]:
    """Return a function that measures the microseconds per signal."""

    def measure_once() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) / count * MICROSECONDS_PER_SECOND

    return measure_once
