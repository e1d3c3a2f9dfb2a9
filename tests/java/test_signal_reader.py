"""The Java reader on real Valkey: one server, a cluster of two, and the emulated ElastiCache cache."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.resources import root
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from signals.connection import BULK_TIMEOUTS, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter
from tests.java.conftest import JavaProgram, java_command
from tests.runtime.signals.conftest import (  # noqa: F401 - fixtures
    LOOPBACK,
    Cache,
    authority,
    cache,
    client,
    cluster,
    credentials,
    own_cache,
    server,
    shared_cache,
    shared_server,
)
from tests.runtime.signals.instants import EXPIRED, EXPIRES, WRITTEN

KEYS = [f"shopper-{number}" for number in range(2500)]


def signal(key: str, expires: int = EXPIRES) -> SignalRecord:
    return SignalRecord("intent", key, f"é😀 {key}", 5, "qwen3-8b", "abc", WRITTEN, expires)


def stored(*keys: str) -> dict[str, Any]:
    return {key: json.loads(signal(key).to_json()) for key in keys}


class Reader(JavaProgram):
    """A Java program that reads what it is asked for."""

    def __init__(self, kind: str, environment: Mapping[str, str]) -> None:
        super().__init__("signal-reader", "inferenceblueprints.signals.Probe", kind, environment=environment)

    def read(self, *keys: str, name: str = "intent") -> Any:
        return self.ask({"name": name, "keys": keys})

    def read_until_answered(self, *keys: str) -> Any:
        """Read while the client reconnects."""
        for _ in range(100):
            answer = self.read(*keys)
            if answer != {"error": "UNREACHABLE"}:
                break
        return answer


@contextmanager
def cache_reader(cache: Cache, user: str = "reader") -> Iterator[Reader]:  # noqa: F811 - a fixture's name
    environment = {
        "SIGNALS_HOST": cache.address.host,
        "SIGNALS_PORT": str(cache.address.port),
        "SIGNALS_CACHE": "signals",
        "SIGNALS_USER": user,
        "SIGNALS_AUTHORITY": str(cache.address.authority),
    }
    with Reader("cache", environment) as reader:
        yield reader


def test_one_server(server: ValkeyServer) -> None:  # noqa: F811
    with server.client() as own:
        SignalWriter(own).write([*map(signal, KEYS), signal("gone", EXPIRED)])
        own.hset("signal:intent:broken", "d", "no record")
        with Reader("server", {"SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(server.port)}) as reader:
            assert reader.answer() == {"opened": True}
            assert reader.read("shopper-7") == stored("shopper-7")
            assert reader.read("missing") == {}
            assert reader.read("gone") == {}, "an expired signal is gone"
            assert reader.read(*KEYS, "missing", "gone") == stored(*KEYS)
            assert reader.read("broken") == {"error": "INVALID"}
            assert reader.read("shopper-1", name="Intent") == {"error": "INVALID"}


@pytest.mark.parametrize("client", ["cluster"], indirect=True)
def test_a_cluster(client: Any, cluster: list[ValkeyServer]) -> None:  # noqa: F811
    SignalWriter(client).write(map(signal, KEYS))
    with Reader("cluster", {"SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(cluster[0].port)}) as reader:
        assert reader.answer() == {"opened": True}
        assert reader.read(*KEYS) == stored(*KEYS), "both nodes answer"


def test_a_cache_with_tokens_and_new_connections(own_cache: Cache) -> None:  # noqa: F811
    with SignalWriter(open_client(replace(own_cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        store.write(map(signal, KEYS))
    own_cache.tokens.clear()
    with cache_reader(own_cache) as reader:
        assert reader.answer() == {"opened": True}
        assert reader.read(*KEYS) == stored(*KEYS)
        before = len(own_cache.tokens)
        own_cache.front.end_connections()
        assert reader.read_until_answered("shopper-1") == stored("shopper-1")
        assert len(own_cache.tokens) > before, "a new connection gets a fresh token"
        own_cache.restart()
        assert reader.read_until_answered("shopper-2") == stored("shopper-2")


def test_the_example_of_the_page_runs(server: ValkeyServer, tmp_path: Path) -> None:  # noqa: F811
    java = re.compile(r"^```java\n(.*?)^```", re.M | re.S)
    page = (root() / "docs" / "java-client.md").read_text(encoding="utf-8")
    [example] = [each for each in java.findall(page) if "SignalReader" in each]
    show = example.replace("\n}", "\n    System.out.println(intent.get().value() + captions.keySet());\n}")
    source = tmp_path / "Example.java"
    source.write_text(
        "import inferenceblueprints.signals.*;\nimport java.util.*;\n"
        f"public class Example {{ public static void main(String[] none) throws Exception {{\n{show}}}}}\n"
    )
    with server.client() as own:
        SignalWriter(own).write([signal("shopper-1"), replace(signal("sku-1234"), name="product-captions")])
        for _ in range(10):
            ran = subprocess.run(
                java_command("signal-reader", str(source)),
                env={**os.environ, "SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(server.port)},
                capture_output=True,
                text=True,
                check=False,
            )
            # On a busy machine the first read can take longer than the limit.
            if "StoreException: UNREACHABLE" not in ran.stderr:
                break
    assert ran.stdout == "é😀 shopper-1[sku-1234]\n", ran.stderr


def test_a_user_that_the_cache_does_not_know(cache: Cache) -> None:  # noqa: F811
    with cache_reader(cache, user="nobody") as reader:
        assert reader.answer() == {"error": "REFUSED"}
