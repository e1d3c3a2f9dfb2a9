"""A change of the configuration cuts no stream, and a wrong one changes nothing, with the real Envoy."""

from __future__ import annotations

import dataclasses
import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from inference_contracts import door_headers
from inference_contracts.door_object import FILES
from tests.unit.render.front_door.door_process import (
    CHAT,
    PATIENCE_SECONDS,
    Door,
    Seen,
    echoed,
    reply,
    running_door,
)
from tests.unit.render.front_door.small_plans import small_plan

pytestmark = pytest.mark.clock

_UPDATES = ("listener_manager.lds", "cluster_manager.cds")
_EVENT = b'data: {"usage":{"prompt_tokens":1,"completion_tokens":%d}}\n\n'


class OpenStream:
    """A stream whose events the test sends one by one."""

    def __init__(self, door: Door) -> None:
        self._next, self._sent = threading.Semaphore(0), 0
        self._ends = False
        door.engine.answer = self._answer
        self._connection = door.connection()
        options = {"include_usage": True, "continuous_usage_stats": True}
        body = json.dumps({"model": "m", "stream": True, "stream_options": options})
        headers = {"authorization": "Bearer good", "content-type": "application/json"}
        self._connection.request("POST", CHAT, body, headers)
        self._next.release()
        self.answer: http.client.HTTPResponse = self._connection.getresponse()
        assert self._line() == _EVENT % 1
        door.engine.answer = echoed

    def _answer(self, handler: BaseHTTPRequestHandler, _: Seen) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        while self._next.acquire(timeout=PATIENCE_SECONDS) and not self._ends:
            self._sent += 1
            event = _EVENT % self._sent
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        handler.wfile.write(b"0\r\n\r\n")

    def _line(self) -> bytes:
        return self.answer.readline() + self.answer.readline()

    def goes_on(self) -> None:
        """Send an event, and get it."""
        self._next.release()
        expected = self._sent + 1
        assert self._line() == _EVENT % expected

    def end(self) -> None:
        """End the stream as engines do."""
        self._ends = True
        self._next.release()
        assert self.answer.read() == b""
        self._connection.close()

    def cut(self) -> None:
        """Leave as a caller who closes the connection."""
        self._connection.close()
        self.answer.close()
        self._ends = True
        self._next.release()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("changes")) as found:
        yield found


def to_two(handler: BaseHTTPRequestHandler, _: Seen) -> None:
    reply(handler, 200, headers={door_headers.TARGET: "two"})


def test_streams_survive_changes_of_listener_and_clusters(door: Door) -> None:
    """Their cluster goes away, and another limit of bodies replaces the listener."""
    usual, stream = door.policy.answer, OpenStream(door)
    try:
        plan = small_plan(largest_body_bytes=2000)
        [_, two] = plan.clusters
        door.write(dataclasses.replace(plan, clusters=(two,)))
        large = {"model": "m", "x": "a" * 3000}
        door.wait_until(lambda: door.ask("POST", CHAT, large).status == 413)
        door.wait_until(lambda: door.ask("POST", CHAT, {"model": "m"}).status == 503)
        door.policy.answer = to_two
        assert door.ask("POST", CHAT, {"model": "m"}).status == 200
        stream.goes_on()
        stream.goes_on()
    finally:
        door.policy.answer = usual
        door.write(door.plan)
        door.wait_until(lambda: door.ask("POST", CHAT, large).status == 200)
    stream.goes_on()
    stream.end()


@pytest.mark.parametrize("content", ['{"resources": [', '{"resources": [{"@type": "x"}]}', "", "[]"])
def test_a_wrong_file_changes_nothing(door: Door, content: str) -> None:
    """Envoy refuses it, and what was read before counts."""
    counters = [f"{name}.update_{how}" for name in _UPDATES for how in ("rejected", "failure")]
    before = sum(map(door.counter, counters))
    folder = Path(door.places.files)
    for name in FILES.values():
        fresh = folder / f".{name}"
        fresh.write_text(content)
        fresh.rename(folder / name)
    door.wait_until(lambda: sum(map(door.counter, counters)) >= before + len(FILES))
    assert door.ask("POST", CHAT, {"model": "m"}).status == 200
    door.write(door.plan)


def test_a_cut_stream_is_counted_up_to_its_last_event(door: Door) -> None:
    stream = OpenStream(door)
    identifier = stream.answer.getheader("x-request-id") or ""
    for _ in range(4):
        stream.goes_on()
    stream.cut()
    line = door.line(identifier)
    assert (line["in"], line["out"], line["flags"]) == (1, 5, "DC")
