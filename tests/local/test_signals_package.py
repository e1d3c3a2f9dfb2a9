"""The package for those who read signals is enough: built, installed where nothing else is, and reading."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import wheels

from inference_blueprints.resources import root
from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer
from signals.connection import BULK_TIMEOUTS, Address, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter
from tests.runtime.signals.instants import EXPIRES, WRITTEN

SIGNAL = SignalRecord("intent", "shopper-1", "shoes", 5, "qwen", "abc", WRITTEN, EXPIRES)
PROGRAM = """
import importlib.metadata, json, sys
from signals.connection import BULK_TIMEOUTS
from signals.reading import open_reader

with open_reader(timeouts=BULK_TIMEOUTS) as reader:
    found = reader.get("intent", "shopper-1")
    print(json.dumps([found.value, found.model, reader.get("intent", "shopper-2")]))
print(json.dumps(sorted(each.name for each in importlib.metadata.distributions())))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the built package and what it asks for."""
    directory = tmp_path_factory.mktemp("signals")
    package = root() / "runtime" / "signals"
    wheels.run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, package),
        directory=root(),
    )
    return wheels.environment(directory / "venv", directory, "inference-signals")


def test_an_application_reads_with_it_alone(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    with ValkeyServer(tmp_path / "valkey") as server:
        with SignalWriter(open_client(Address(LOOPBACK, server.port), BULK_TIMEOUTS)) as store:
            store.write([SIGNAL])
        environment = {"SIGNALS_HOST": LOOPBACK, "SIGNALS_PORT": str(server.port)}
        printed = wheels.run(python, "-I", program, directory=tmp_path, variables=environment)
    read, packages = map(json.loads, printed.splitlines())
    assert read == ["shoes", "qwen", None]
    assert packages == [
        "botocore",
        "inference-signals",
        "jmespath",
        "python-dateutil",
        "six",
        "urllib3",
        "valkey",
    ]
