"""The probe: its event is the application's with a session of its own, and it waits for its own signal."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, cast

import pytest

from inference_contracts.streaming_job import StreamingJobConfiguration
from signals.reading import SignalReader
from signals.record import SignalRecord
from streaming import probe
from streaming.job_topics import TopicWriter, store_address

JOB = StreamingJobConfiguration.from_json(Path(__file__).with_name("job.json").read_text("utf-8"))
EXAMPLE = {"id": "e-1", "shopper": "s-42", "time": 1, "kind": "view", "price": 89.9}


class Way:
    """The way from an event to a signal, which answers after some looks."""

    def __init__(self, looks: int | None) -> None:
        self.looks = looks
        self.events: list[tuple[dict[str, Any], bytes | None]] = []

    def write(self, value: bytes, key: bytes | None = None) -> None:
        self.events.append((json.loads(value), key))

    def get(self, name: str, key: str) -> SignalRecord | None:
        assert (name, key.encode()) == (JOB.signal.name, self.events[0][1])
        if self.looks is None or self.looks > 0:
            self.looks = None if self.looks is None else self.looks - 1
            return None
        return SignalRecord(name, key, "{}", 1, "m", "h", 1, 2)


def send(way: Way, wait_seconds: float) -> dict[str, Any]:
    return probe.send_probe(JOB, cast("TopicWriter", way), cast("SignalReader", way), EXAMPLE, wait_seconds)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_LOOK_SECONDS", 0.0)


def test_the_event_has_a_session_and_time_of_its_own_and_the_rest_of_the_example() -> None:
    way, before = Way(looks=3), time.time()
    found = send(way, 60.0)
    [(event, key)] = way.events
    assert found["session"].startswith("blueprints-probe-")
    assert event[JOB.session.key] == found["session"] == (key or b"").decode()
    assert before - 1 <= event[JOB.session.time] / 1000 <= time.time() + 1
    assert JOB.session.id is not None
    assert event[JOB.session.id] == found["session"]
    assert (event["kind"], event["price"]) == ("view", 89.9)
    assert found["value"] == "{}"
    assert found["milliseconds"] >= 0


def test_two_probes_have_two_sessions() -> None:
    assert send(Way(0), 1.0)["session"] != send(Way(0), 1.0)["session"]


def test_without_a_signal_it_says_so() -> None:
    assert send(Way(looks=None), 0.0)["milliseconds"] is None


def test_functions_connect_as_their_own_user() -> None:
    address = store_address(JOB.signal.store, {"SIGNALS_USER": "cache-reader"})
    if JOB.signal.store.authentication == "iam":
        assert (address.user, address.cache) == ("cache-reader", JOB.signal.store.cache_name)
    else:
        assert (address.user, address.cache) == (None, None)
