"""The Java writer on real Valkey, held to the cases of the Python package."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.resources import root
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer
from signals.connection import BULK_TIMEOUTS, open_client
from signals.reading import SignalReader
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
from tests.runtime.signals.test_conformance import CASES, written_signal


def program(kind: str, environment: Mapping[str, str]) -> JavaProgram:
    return JavaProgram(
        "signal-reader", "inferenceblueprints.signals.WriteProbe", kind, environment=environment
    )


def check(writer: JavaProgram, store: Any) -> None:
    """Write each case, and read it with the Python package."""
    assert writer.answer() == {"opened": True}
    for number, case in enumerate(CASES["writes"]):
        key = f"case {number}"
        for step in case["steps"]:
            if step.get("forget"):
                store.script_flush()
            [written] = writer.ask([written_signal(step, key)])
            if step["written"] is None:
                assert written == "INVALID", case["what"]
                continue
            found = SignalReader(store).get("intent", key)
            assert (written, found and found.value) == (step["written"], step["stored"]), case["what"]


def signals(count: int, version: int) -> list[dict[str, Any]]:
    return [
        written_signal({"version": version, "value": f"value {version}"}, f"many {each}")
        for each in range(count)
    ]


def test_one_server(server: ValkeyServer) -> None:  # noqa: F811 - a fixture's name
    with (
        server.client() as own,
        program("server", {"SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(server.port)}) as writer,
    ):
        check(writer, own)
        own.script_flush()
        assert writer.ask(signals(2_000, 2)) == [True] * 2_000
        assert writer.ask(signals(2_000, 1)) == [False] * 2_000
        own.set("signal:intent:many 7", "not a hash")
        assert writer.ask(signals(9, 3)) == [*[True] * 7, "FAILED", True]


@pytest.mark.parametrize("client", ["cluster"], indirect=True)
def test_a_cluster(client: Any, cluster: list[ValkeyServer]) -> None:  # noqa: F811
    """Each node learns the script by itself."""
    with program("cluster", {"SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(cluster[0].port)}) as writer:
        check(writer, client)
        assert writer.ask(signals(2_000, 2)) == [True] * 2_000
        assert (
            len(SignalReader(client).get_many("intent", [f"many {each}" for each in range(2_000)])) == 2_000
        )


def test_a_cache(own_cache: Cache) -> None:  # noqa: F811
    """With TLS, a token and the permissions of a writer; and after a restart, which forgets the script."""
    address = own_cache.address
    environment = {
        "SIGNALS_HOST": address.host,
        "SIGNALS_PORT": str(address.port),
        "SIGNALS_CACHE": "signals",
        "SIGNALS_AUTHORITY": str(address.authority),
    }
    with program("cache", environment | {"SIGNALS_USER": "writer"}) as writer:
        assert writer.answer() == {"opened": True}
        assert writer.ask(signals(3, 2)) == [True] * 3
        own_cache.restart()
        for _ in range(100):
            answer = writer.ask(signals(3, 2))
            if "UNREACHABLE" not in answer:
                break
        assert set(answer) <= {True, False}
        with open_client(replace(address, user="reader"), BULK_TIMEOUTS) as reading:
            assert len(SignalReader(reading).get_many("intent", [f"many {each}" for each in range(3)])) == 3
    with program("cache", environment | {"SIGNALS_USER": "reader"}) as writer:
        assert writer.answer() == {"opened": True}
        assert writer.ask(signals(1, 3)) == ["REFUSED"], "a reader may not write"


def test_the_example_of_the_page_runs(server: ValkeyServer, tmp_path: Path) -> None:  # noqa: F811
    page = (root() / "docs" / "java-client.md").read_text(encoding="utf-8")
    [example] = [
        each for each in re.findall(r"^```java\n(.*?)^```", page, re.M | re.S) if "SignalWriter" in each
    ]
    source = tmp_path / "Example.java"
    show = example.replace("\n}", "\n    System.out.println(visible);\n}")
    source.write_text(
        "import inferenceblueprints.signals.*;\nimport java.time.Instant;\n"
        f"public class Example {{ public static void main(String[] none) throws Exception {{\n{show}}}}}\n"
    )
    ran = subprocess.run(
        java_command("signal-reader", str(source)),
        env={**os.environ, "SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(server.port)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "true\n", ran.stderr
    with server.client() as own:
        found = SignalReader(own).get("intent", "shopper-1")
        assert found is not None
        assert found.value == "buys shoes"
