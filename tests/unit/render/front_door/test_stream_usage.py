"""A caller sees the usage of a stream that was asked for, and no other, with the real Envoy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.render.front_door.door_process import (
    CHAT,
    Door,
    echoed,
    event,
    running_door,
    stream,
    usage_event,
)

pytestmark = pytest.mark.clock

_CACHED = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}
_TEXT = {"choices": [{"delta": {"content": '{"usage":{"a":1}} "choices":[]'}}], "usage": _CACHED}
_LAST = usage_event(prompt_tokens=3, completion_tokens=2)
_EVENTS = [event(_TEXT), event({"choices": [{"delta": {}}], "usage": _CACHED}), _LAST, b"data: [DONE]\n\n"]
_COMPACT = [
    json.dumps(json.loads(each[6:]), separators=(",", ":")).join(("data: ", "\r\n\r\n")).encode()
    for each in _EVENTS[:3]
]
_DONE = b"data: [DONE]\n\n"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("usage")) as found:
        yield found


def seen(door: Door, parts: list[bytes], options: dict[str, bool] | None, path: str = CHAT) -> list[Any]:
    """Return the documents of the events that a caller sees."""
    door.engine.answer = lambda handler, _: stream(handler, parts)
    body = {"model": "m", "stream": True, **({"stream_options": options} if options else {})}
    answer = door.ask("POST", path, body)
    door.engine.answer = echoed
    line = door.line(answer.headers["x-request-id"])
    assert (line["in"], line["out"], line["cached"]) == (3, 2, 2)
    events = answer.body.replace(b"\r\n", b"\n").split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    return [json.loads(each.removeprefix(b"data: ")) for each in events[:-2]]


WAYS = {
    "an event each": _EVENTS,
    "all at once": [b"".join(_EVENTS)],
    "in single bytes": [bytes([each]) for each in b"".join(_EVENTS)],
    "without spaces, with other lines": [*_COMPACT, _DONE],
    "the end of one with the begin of the next": [
        b"".join(_EVENTS)[:100],
        b"".join(_EVENTS)[100:300],
        b"".join(_EVENTS)[300:],
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_caller_who_asked_for_none_sees_no_usage(door: Door, way: str) -> None:
    """Red if clients meet an event without choices that they did not ask for."""
    [text, empty] = seen(door, WAYS[way], None)
    assert text == {**_TEXT, "usage": None}
    assert empty == {"choices": [{"delta": {}}], "usage": None}


@pytest.mark.parametrize("way", WAYS)
def test_a_caller_who_asked_for_the_last_sees_that(door: Door, way: str) -> None:
    [text, _, last] = seen(door, WAYS[way], {"include_usage": True})
    assert text["usage"] is None
    assert last["usage"] == {"prompt_tokens": 3, "completion_tokens": 2}


def test_a_caller_who_asked_for_each_sees_each(door: Door) -> None:
    found = seen(door, _EVENTS, {"include_usage": True, "continuous_usage_stats": True})
    assert [each["usage"]["completion_tokens"] for each in found] == [1, 1, 2]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_other_apis_are_not_asked_and_not_changed(door: Door, path: str) -> None:
    """They state the usage at the end without being asked, and do not know the field."""
    assert len(seen(door, _EVENTS, None, path)) == 3
    assert "stream_options" not in json.loads(door.engine.seen[-1].body)


def test_a_stream_without_an_end_of_its_last_event_is_passed_on(door: Door) -> None:
    door.engine.answer = lambda handler, _: stream(handler, [b"data: a\n\ndata: ", b"b"])
    answer = door.ask("POST", CHAT, {"model": "m", "stream": True})
    door.engine.answer = echoed
    assert answer.body == b"data: a\n\ndata: b"
