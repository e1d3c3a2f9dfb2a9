"""The cases that the Java reader passes too (runtime/java/signal-reader, ConformanceTest).

With the servers of `client` that have `pytest.mark.clock`, they belong to that suite.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

import pytest
import time_machine

from inference_blueprints.resources import root
from signals.connection import IamToken, read_address
from signals.reading import SignalReader
from signals.record import InvalidSignalError, SignalRecord, check_name, storage_key
from signals.store import _WRITE_IF_NEWER, SignalWriter
from signals.store_errors import SettingsError

WRITTEN: Final = 1_700_000_000
EXPIRES: Final = 4_000_000_000
_FILE = root() / "tests" / "runtime" / "signals" / "conformance.json"
CASES = json.loads(_FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES["names"], ids=lambda case: repr(case["name"]))
def test_names_are_checked(case: dict[str, Any]) -> None:
    if case["valid"]:
        check_name(case["name"])
    else:
        with pytest.raises(InvalidSignalError):
            check_name(case["name"])


@pytest.mark.parametrize("case", CASES["records"])
def test_records_are_read(case: dict[str, Any]) -> None:
    name, key = case["name"], case["key"] * case.get("keyRepeated", 1)
    if "reads" not in case:
        with pytest.raises(InvalidSignalError):
            SignalRecord.from_json(name, key, case["stored"])
        return
    record = SignalRecord.from_json(name, key, case["stored"])
    assert (record.name, record.key, json.loads(record.to_json())) == (name, key, case["reads"])


@pytest.mark.parametrize("case", CASES["storageKeys"])
def test_keys_have_their_place(case: dict[str, str]) -> None:
    assert storage_key(case["name"], case["key"]) == case["stored"]


@pytest.mark.parametrize("case", CASES["environments"])
def test_variables_are_read(case: dict[str, Any]) -> None:
    if "faults" in case:
        with pytest.raises(SettingsError) as caught:
            read_address(case["variables"])
        assert str(caught.value).split("\n") == case["faults"]
        return
    address = read_address(case["variables"])
    assert (address.host, address.port, address.cache) == (case["host"], case["port"], case.get("cache"))


def test_a_token_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["token"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", case["accessKey"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", case["secretKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", case["sessionToken"])
    with time_machine.travel(datetime.fromisoformat(case["time"]), tick=False):
        token = IamToken(case["cache"], case["user"], case["region"])
        assert token.get_credentials() == (case["user"], case["token"])


def written_signal(step: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the signal that a step of a case writes."""
    expires = step.get("expires", EXPIRES)
    named = {"name": "intent", "key": key, "model": "qwen3-8b", "promptHash": "4f1e"}
    return named | {"value": step["value"], "version": step["version"], "time": WRITTEN, "expires": expires}


@pytest.mark.parametrize("case", CASES["writes"], ids=lambda case: case["what"])
def test_writes(case: dict[str, Any], client: Any) -> None:
    key = f"conformance {case['what']}"
    for step in case["steps"]:
        if step.get("forget"):
            client.script_flush()
        fields = written_signal(step, key)
        fields["prompt_hash"] = fields.pop("promptHash")
        if step["written"] is None:
            with pytest.raises(InvalidSignalError):
                SignalRecord(**fields)
            continue
        assert SignalWriter(client).write([SignalRecord(**fields)]).written == step["written"]
        found = SignalReader(client).get("intent", key)
        assert (found and found.value) == step["stored"]


def test_the_script_of_writes_is_that_of_java() -> None:
    """A server then keeps one script, by the digest of its text."""
    assert CASES["writeScript"] == _WRITE_IF_NEWER
