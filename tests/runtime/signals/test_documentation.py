"""What docs/signals.md says is done here: the program runs, the shell line makes a token, the key exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from inference_blueprints.resources import root
from inference_runtime import runtime_directory
from signals.connection import BULK_TIMEOUTS, open_client
from signals.record import SignalRecord, storage_key
from signals.store import SignalWriter
from tests.runtime.signals.conftest import Cache
from tests.runtime.signals.instants import EXPIRES, WRITTEN

pytestmark = pytest.mark.clock

SIGNAL = SignalRecord("product-captions", "sku-1234", "a red shoe", 5, "qwen3-8b", "abc", WRITTEN, EXPIRES)
PAGE = (root() / "docs" / "signals.md").read_text(encoding="utf-8")


def fence(language: str, holding: str) -> str:
    found: str
    [found] = [
        body for body in re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S) if holding in body
    ]
    return found


@pytest.fixture
def environment(cache: Cache) -> dict[str, str]:
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        store.write([SIGNAL])
    return {
        **os.environ,
        "PYTHONPATH": str(runtime_directory()),
        "SIGNALS_HOST": cache.address.host,
        "SIGNALS_PORT": str(cache.address.port),
        "SIGNALS_CACHE": "signals",
        "SIGNALS_USER": "reader",
        "SIGNALS_AUTHORITY": str(cache.address.authority),
    }


def test_the_program_prints_a_signal(environment: dict[str, str]) -> None:
    program = fence("python", "open_reader").replace(
        "open_reader()", "open_reader(timeouts=signals.connection.BULK_TIMEOUTS)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", f"import signals.connection\n{program}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"a red shoe qwen3-8b {SIGNAL.expires}\n"


def test_the_shell_s_token_lets_the_reader_in_and_its_key_is_there(
    cache: Cache, environment: dict[str, str]
) -> None:
    lines = fence("sh", "VALKEYCLI_AUTH")
    make_token = re.search(r"\$\((python3 .*)\)\"$", lines, re.M)
    assert make_token
    command = (
        make_token[1]
        .replace("python3", sys.executable)
        .replace("CACHE", "signals")
        .replace("READER", "reader")
    )
    token = subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    read = re.search(r"valkey-cli .* HGET (\S+) (\S+)$", lines, re.M)
    assert read
    assert read.groups() == (storage_key("product-captions", "sku-1234"), "d")
    assert cache.check.is_valid("reader", token)
    with cache.server.client() as own:
        assert SignalRecord.from_json("product-captions", "sku-1234", own.hget(*read.groups())) == SIGNAL
