"""``python -m signals`` prints records, and tells a key without a value from a store without an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

from inference_blueprints.local.emulator.serverless_cache.valkey_server import LOOPBACK, ValkeyServer
from inference_blueprints.resources import runtime_directory
from signals.connection import PATIENT, Address, open_client
from signals.record import Signal
from signals.store import SignalStore

NOW = int(time.time())
SIGNAL = Signal("intent", "shopper-1", "shoes", 5, "qwen", "abc", NOW, NOW + 3600)


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
    with SignalStore(open_client(Address(LOOPBACK, server.port), PATIENT)) as store:
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
        "time": NOW,
        "expires": NOW + 3600,
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
