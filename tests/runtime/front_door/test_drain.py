"""A replica that ends lets its streams end first, with the real Envoy in the door's configuration."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from front_door import policy_check
from front_door.drain import drain, main

from inference_contracts.door_headers import READY_PATH
from tests.unit.render.front_door.door_process import PATIENCE_SECONDS, Door, running_door
from tests.unit.render.front_door.test_changes import OpenStream

pytestmark = pytest.mark.clock


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with running_door(tmp_path) as running:
        yield running


class Draining:
    """A run of the program, in a thread."""

    def __init__(self, door: Door, seconds: float) -> None:
        self.left: list[int] = []
        place = door.places.admin_socket
        self._thread = threading.Thread(
            target=lambda: self.left.append(asyncio.run(drain(place, seconds, notice=0.0)))
        )
        self._thread.start()

    def end(self) -> int:
        """Wait for its end, and return the number of requests that are left."""
        self._thread.join(PATIENCE_SECONDS)
        [left] = self.left
        return left


def test_it_ends_when_the_last_stream_has_ended_and_takes_no_new_requests_meanwhile(door: Door) -> None:
    """Red if Envoy is ended under a stream, or if load balancers go on sending requests to it."""
    stream = OpenStream(door)
    draining = Draining(door, PATIENCE_SECONDS)
    door.wait_until(lambda: door.ask("GET", READY_PATH).status == 503)
    assert draining.left == []
    stream.goes_on()
    # Each connection ends after its request, so that the load balancer opens others elsewhere.
    assert door.ask("POST", "/v1/chat/completions", {"model": "m"}).headers["connection"] == "close"
    stream.end()
    assert draining.end() == 0


def test_it_waits_no_longer_than_it_may(door: Door) -> None:
    stream = OpenStream(door)
    assert Draining(door, 0.5).end() == 1
    stream.end()


def test_without_envoy_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing.sock")
    assert main([missing, "5"]) == 2
    assert missing in capsys.readouterr().err
    assert main([missing]) == 2
    assert "usage" in capsys.readouterr().err
    assert policy_check.main([missing, READY_PATH]) == 1


def test_the_check_of_the_policy_follows_its_answer(door: Door) -> None:
    """Red if a container counts as healthy whose process does not answer as it should."""
    assert policy_check.main([door.places.admin_socket, READY_PATH]) == 0
    assert policy_check.main([door.places.policy_socket, "/nothing"]) == 1
