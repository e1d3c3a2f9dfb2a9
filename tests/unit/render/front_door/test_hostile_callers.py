"""What hostile callers and servers can do to the real Envoy: nothing to others."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.unit.render.front_door.door_process import (
    CHAT,
    LOOPBACK,
    PATIENCE_SECONDS,
    Door,
    Seen,
    echoed,
    event,
    hang_up,
    reply,
    running_door,
    stream,
    usage_event,
)

pytestmark = pytest.mark.clock

_PART = 65536
_SILENCE_SECONDS = 0.1
_HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good\r\ncontent-type: application/json\r\n"
_BODY = '{"model":"m"}'
_LENGTH = f"content-length: {len(_BODY)}\r\n\r\n"
_CHUNKED = "transfer-encoding: chunked"
_SECOND = "GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good\r\nx-smuggled: yes\r\n\r\n"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("hostile")) as found:
        yield found


@pytest.fixture(autouse=True)
def _usual_engine(door: Door) -> Iterator[None]:
    yield
    door.engine.answer = echoed


def sent(door: Door, text: str) -> bytes:
    """Send bytes, and return all that comes back until the connection ends or is silent."""
    with socket.create_connection((LOOPBACK, door.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(text.encode("latin-1"))
        found = b""
        while not _is_whole(found):
            found += connection.recv(_PART)
        connection.settimeout(_SILENCE_SECONDS)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while part := connection.recv(_PART):
                found += part
        return found


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(end and length and len(body) >= int(length[1]))


SMUGGLED = {
    "two lengths": f"{_HEAD}content-length: 13\r\ncontent-length: 0\r\n\r\n{_BODY}{_SECOND}",
    "a length and chunks": f"{_HEAD}content-length: 4\r\n{_CHUNKED}\r\n\r\n0\r\n\r\n{_SECOND}",
    "a length that is a list": f"{_HEAD}content-length: 13, 0\r\n\r\n{_BODY}{_SECOND}",
    "a length with a sign": f"{_HEAD}content-length: +13\r\n\r\n{_BODY}{_SECOND}",
    "a length in hexadecimal": f"{_HEAD}content-length: 0x0d\r\n\r\n{_BODY}{_SECOND}",
    "a length beyond 64 bits": f"{_HEAD}content-length: 18446744073709551629\r\n\r\n{_BODY}{_SECOND}",
    "an unknown coding": f"{_HEAD}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{_SECOND}",
    "two codings": f"{_HEAD}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{_SECOND}",
    "a name with a space": f"{_HEAD}transfer-encoding : x\r\ncontent-length: 0\r\n\r\n0\r\n\r\n{_SECOND}",
    "a folded line": f"{_HEAD}x-a: b\r\n {_CHUNKED}\r\n{_LENGTH}{_BODY}",
    "a lone line feed": f"{_HEAD}x-a: b\n{_CHUNKED}\r\n{_LENGTH}{_BODY}",
    "a lone carriage return": f"{_HEAD}x-a: b\r{_CHUNKED}\r\n{_LENGTH}{_BODY}",
    "a name with an underscore": f"{_HEAD}content_length: 99\r\n{_LENGTH}{_BODY}",
    "a zero byte": f"{_HEAD}x-a: b\0c\r\n{_LENGTH}{_BODY}",
    "an upgrade": f"{_HEAD}connection: upgrade\r\nupgrade: h2c\r\n{_LENGTH}{_BODY}",
    "HTTP/2 without asking": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a tunnel": "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n",
    "HTTP/1.0": f"POST {CHAT} HTTP/1.0\r\n{_LENGTH}{_BODY}",
    "too many headers": _HEAD + "".join(f"x-{n}: 1\r\n" for n in range(120)) + f"{_LENGTH}{_BODY}",
    "a head that is too large": f"{_HEAD}x-a: {'a' * 40_000}\r\n{_LENGTH}{_BODY}",
    "an escaped slash": "POST /v1%2fchat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("case", SMUGGLED)
def test_no_request_hides_in_another(door: Door, case: str) -> None:
    """Red if a server would read a request where Envoy reads a body."""
    before = len(door.engine.seen), len(door.policy.seen)
    answer = sent(door, SMUGGLED[case])
    arrived = door.engine.seen[before[0] :]
    assert not [each for each in arrived if "x-smuggled" in each.headers]
    for each in arrived:
        assert each.headers.get("content-length") == str(len(each.body))
        assert "transfer-encoding" not in each.headers
    if not arrived:
        first, _, rest = answer.partition(b"\r\n")
        assert first.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501 ")), answer
        body = rest.partition(b"\r\n\r\n")[2]
        assert json.loads(body.splitlines()[0])["error"]["code"], answer


def test_errors_before_the_first_filter_have_openais_form(door: Door) -> None:
    """Red if one of Envoy's own answers is text."""
    statuses = {"HTTP/1.0": 426, "too many headers": 431, "a head that is too large": 431, "two lengths": 400}
    for case, status in statuses.items():
        head, _, body = sent(door, SMUGGLED[case]).partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ".encode()), (case, head, body)
        assert json.loads(body)["error"]["code"], (case, body)


def test_paths_are_the_listed_ones(door: Door) -> None:
    before = len(door.engine.seen), len(door.policy.seen)
    paths = ["/", "//", "/metrics", "/v1", "/busy_threshold", "/v1/../metrics", "/v1/tokenize"]
    paths += [f"{CHAT}/", f"/x{CHAT}"]
    found = {path: door.ask("POST", path, {"model": "m"}) for path in paths}
    assert {each.status for each in found.values()} <= {404}, found
    assert {each.code for each in found.values()} == {"unknown_url"}
    methods = {method: door.ask(method, CHAT) for method in ("GET", "DELETE", "OPTIONS", "PUT")}
    assert {each.status for each in methods.values()} == {405}
    assert {each.headers["content-type"] for each in methods.values()} == {"application/json"}
    names = {name for each in methods.values() for name in each.headers}
    assert not [name for name in names if name.startswith("access-control")]
    assert (len(door.engine.seen), len(door.policy.seen)) == before


def test_a_line_of_the_log_is_one_line(door: Door) -> None:
    """Red if what a caller sends can end a line or add a field to it."""
    evil = '","reservation":"stolen'
    headers = {"x-client-request-id": evil, "user-agent": evil}
    answer = door.ask("POST", f"{CHAT}?a={'%0a%22,%22team%22:%22evil'}", {"model": "a{b}"}, headers)
    line = door.line(answer.headers["x-request-id"])
    assert (line["callersId"], line["path"]) == (evil, CHAT)
    assert line["reservation"] == answer.headers["x-request-id"]
    # No caller writes the fields of a decision: without one, there are none.
    refused = door.ask("POST", CHAT, {"model": "m"}, {"authorization": "x", "x-door-reservation": "stolen"})
    line = door.line(refused.headers["x-request-id"])
    assert (line["status"], line["details"]) == (401, "ext_authz_denied")
    assert not {"reservation", "team", "target"} & line.keys()


def test_no_decision_is_a_refusal(door: Door) -> None:
    """The policy breaks: nobody reaches a model."""
    usual, before = door.policy.answer, len(door.engine.seen)
    try:
        door.policy.answer = lambda handler, _: reply(handler, 500, b"Traceback: secret")
        broken = door.ask("POST", CHAT, {"model": "m"})
        door.policy.answer = lambda handler, _: hang_up(handler)
        gone = door.ask("POST", CHAT, {"model": "m"})
        door.policy.answer = lambda handler, _: reply(handler, 200)
        nowhere = door.ask("POST", CHAT, {"model": "m"})
    finally:
        door.policy.answer = usual
    for answer in (broken, gone, nowhere):
        assert answer.status == 503, answer
        assert int(answer.headers["retry-after"]) > 0
        assert b"secret" not in answer.body
    assert (broken.code, gone.code, nowhere.code) == ("unavailable", "unavailable", "model_unavailable")
    assert len(door.engine.seen) == before


_LONG = {"choices": "x" * 900_000, "usage": {"completion_tokens": 9}}
_RESPONSE: dict[str, Any] = {
    "type": "response.completed",
    "response": {"usage": {"input_tokens": 3, "output_tokens": 8}},
}
_SCHEMA = {"usage": {"prompt_tokens": 1, "input_tokens": 1, "output_tokens": 0}}
_START = {"type": "message_start", "message": {"usage": {"input_tokens": 6}}}
_TEXT = {"choices": [{"delta": {"content": '"usage":{"completion_tokens":1}'}}]}


_COUNTED = usage_event(prompt_tokens=5, completion_tokens=2)
STREAMS: dict[str, tuple[list[bytes], dict[str, int]]] = {
    "usage in each event": (
        [usage_event(prompt_tokens=5, completion_tokens=number) for number in range(4)],
        {"in": 5, "out": 3},
    ),
    "an event in parts": ([bytes([each]) for each in _COUNTED], {"in": 5, "out": 2}),
    "an event of 900 KB": ([event(_LONG)], {"out": 9}),
    "an endless event, then usage": (
        [b"data: " + b"x" * 3_000_000, b"\n\n", _COUNTED],
        {"in": 5, "out": 2},
    ),
    "events that are no JSON": (
        [b"data: [DONE]\n\n", b": comment\n\n", b"data: {\n\n", b"\n\n\n", _COUNTED],
        {"in": 5, "out": 2},
    ),
    "lines that end otherwise": ([_COUNTED.replace(b"\n", b"\r\n")], {"in": 5, "out": 2}),
    "usage as the model's text": ([event(_TEXT)], {}),
    "usage in what is echoed of a request": (
        [event({"type": "x", "response": {**_RESPONSE["response"], "tools": [_SCHEMA]}})],
        {"in": 3, "out": 8},
    ),
    "usage in a schema alone": ([event({"tools": [_SCHEMA], "other": _SCHEMA})], {}),
    "numbers that are none": ([usage_event(prompt_tokens="many", completion_tokens=None)], {}),
    "the last event of responses": ([event(_RESPONSE)], {"in": 3, "out": 8}),
    "messages": ([event(_START), event({"usage": {"output_tokens": 7}})], {"in": 6, "out": 7}),
}


@pytest.mark.parametrize("case", STREAMS)
def test_the_usage_of_a_stream_is_what_the_engine_said(door: Door, case: str) -> None:
    events, usage = STREAMS[case]

    def engine(handler: BaseHTTPRequestHandler, _: Seen) -> None:
        stream(handler, events)

    door.engine.answer = engine
    options = {"include_usage": True, "continuous_usage_stats": True}
    answer = door.ask("POST", CHAT, {"model": "m", "stream": True, "stream_options": options})
    assert answer.body == b"".join(events)
    line = door.line(answer.headers["x-request-id"])
    assert {name: line[name] for name in ("in", "out") if name in line} == usage


def test_slow_callers_do_not_stop_others(door: Door) -> None:
    """200 callers send a byte of the head, or half a body, and wait."""
    parts = [_HEAD[:20], f"{_HEAD}content-length: 1000000\r\n\r\n{{"]
    slow = [socket.create_connection((LOOPBACK, door.port)) for _ in range(200)]
    for number, connection in enumerate(slow):
        connection.sendall(parts[number % 2].encode())
    try:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: door.ask("POST", CHAT, {"model": "m"}).status, range(40)))
        assert set(answers) == {200}
    finally:
        for connection in slow:
            connection.close()


def test_strangers_are_refused_before_their_body_takes_memory(door: Door) -> None:
    """Red if anybody who reaches the door can fill its memory: only the head is sent."""
    length = 1_000_000
    for key, status in (("bad", b"401"), ("good", None)):
        head = _HEAD.replace("good", key) + f"content-length: {length}\r\n\r\n"
        with socket.create_connection((LOOPBACK, door.port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(head.encode())
            if status:
                assert connection.recv(_PART).startswith(b"HTTP/1.1 " + status)
                continue
            asked = len(door.policy.seen)
            body = b'{"model":"m","x":"' + b"a" * (length - 20) + b'"}'
            connection.sendall(body)
            assert connection.recv(_PART).startswith(b"HTTP/1.1 200")
            # Who it is, and what it may cost.
            paths = [each.path for each in door.policy.seen[asked - 1 :]]
            assert paths[-2:] == ["/decide/v1/models", f"/decide{CHAT}"]
            assert len(door.engine.seen[-1].body) > length


@pytest.mark.parametrize(("status", "expected"), [(429, 429), (500, 503), (302, 503)])
def test_only_a_plain_yes_lets_a_large_body_in(door: Door, status: int, expected: int) -> None:
    usual = door.policy.answer
    door.policy.answer = lambda handler, _: reply(
        handler, status, b'{"error":{"code":"x"}}', {"retry-after": "7"}
    )
    answer = door.ask("POST", CHAT, b'{"model":"m","x":"' + b"a" * 100_000 + b'"}')
    door.policy.answer = usual
    assert answer.status == expected
    assert answer.headers["retry-after"] == ("7" if expected == status else "1")
