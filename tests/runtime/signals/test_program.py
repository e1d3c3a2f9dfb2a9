"""``python -m signals`` prints records, and tells a key without a value from a store without an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

from inference_blueprints.local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer
from inference_blueprints.resources import runtime_directory
from signals.connection import BULK_TIMEOUTS, Address, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter
from tests.runtime.signals.instants import EXPIRES, WRITTEN

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


def test_records_are_printed_as_they_are_stored(server: ValkeyServer) -> None:
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


def test_what_does_not_answer_is_said_on_one_line() -> None:
    for words, message in ((("intent", "x"), "does not answer"), (("a:b", "x"), "name: must match")):
        ran = run(1, *words)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert message in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
