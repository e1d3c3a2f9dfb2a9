"""``python -m signals`` prints records, and tells a key without a value from a store without an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from inference_local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer
from inference_runtime import runtime_directory
from signals.__main__ import main
from signals.connection import BULK_TIMEOUTS, Address, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter
from tests.runtime.conftest import Pauses
from tests.runtime.signals.instants import EXPIRES, WRITTEN
from tests.runtime.signals.memory_server import MemoryServer

SIGNAL = SignalRecord("intent", "shopper-1", "shoes", 5, "qwen", "abc", WRITTEN, EXPIRES)


def run(port: int, *words: str, keys: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        "SIGNALS_HOST": LOOPBACK,
        "SIGNALS_PORT": str(port),
        "PYTHONPATH": str(runtime_directory()),
    }
    return subprocess.run(
        [sys.executable, "-m", "signals", *words],
        env={"PATH": os.defpath, **environment},
        input=keys,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.clock
def test_the_program_prints_records_as_they_are_stored(server: ValkeyServer) -> None:
    with SignalWriter(open_client(Address(LOOPBACK, server.port), BULK_TIMEOUTS)) as store:
        store.write([SIGNAL, replace(SIGNAL, key="a\u2028b c")])
    ran = run(server.port, "intent", "shopper-1")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {
        "name": "intent",
        "key": "shopper-1",
        "value": "shoes",
        "version": 5,
        "model": "qwen",
        "promptHash": "abc",
        "time": WRITTEN,
        "expires": EXPIRES,
    }
    ran = run(server.port, "intent", keys="a\u2028b c\nnobody\nshopper-1\n")
    assert ran.returncode == 3
    assert [json.loads(line)["key"] for line in ran.stdout.splitlines()] == ["a\u2028b c", "shopper-1"]


def ask_at(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNALS_HOST", LOOPBACK)
    monkeypatch.setenv("SIGNALS_PORT", str(port))


def test_keys_with_a_value_are_printed_and_others_are_told_by_the_exit_code(
    memory: MemoryServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask_at(memory.port, monkeypatch)
    with SignalWriter(open_client(Address(LOOPBACK, memory.port), BULK_TIMEOUTS)) as store:
        store.write([SIGNAL])
    assert main("intent", ["shopper-1"]) == 0
    assert main("intent", ["nobody", "shopper-1"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["shoes", "shoes"]


@pytest.mark.parametrize(
    ("name", "message"), [("intent", "does not answer"), ("a:b", "name: must match")], ids=["away", "wrong"]
)
def test_what_does_not_answer_is_said_on_one_line(
    name: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pauses: Pauses,
) -> None:
    ask_at(1, monkeypatch)
    assert main(name, ["x"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
