"""The relay as a program between a client and frontends that the tests play themselves."""

import gzip
import http.client
import json
import os
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.frontend_process import open_listeners
from inference_local.serving.relay import Route
from inference_local.serving.structured_answers import SUFFIX

_TIMEOUT = 240.0
_CHAT = "/v1/chat/completions"
_LARGE_BYTES = 20_000_000
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class _Received:
    """A request as a frontend received it, and the connection to answer on."""

    connection: socket.socket
    line: str
    headers: http.client.HTTPMessage
    body: bytes

    def answer(self, body: bytes = b"{}", *, status: bytes = b"200 OK", headers: bytes = b"") -> None:
        """Answer, and end the connection."""
        length = b"Content-Length: %d\r\nConnection: close\r\n" % len(body)
        self.connection.sendall(b"HTTP/1.1 " + status + b"\r\n" + length + headers + b"\r\n" + body)
        self.connection.close()


class _Relayed:
    """Frontends behind one relayed port."""

    def __init__(self, directory: Path, weights: list[float], resources: ExitStack) -> None:
        self._resources = resources
        group = resources.enter_context(ProcessGroup(grace_seconds=1))
        self.frontends = [self._keep(socket.create_server(("127.0.0.1", 0))) for _ in weights]
        frontend_ports = [frontend.getsockname()[1] for frontend in self.frontends]
        ports = open_listeners(
            {
                "model": Route(
                    tuple(zip(frontend_ports, weights, strict=True)),
                    answer_tokens=10,
                    structured=tuple(frontend_ports),
                )
            },
            lambda command, sockets: group.start(
                "relay", command, environment=os.environ, log_path=directory / "log", pass_fds=sockets
            ),
        )
        self.address = ("127.0.0.1", ports["model"])
        self._check = group.check
        self._log = directory / "log"

    def check(self) -> None:
        """The relay still runs, and nothing that happened was a fault of its own."""
        self._check()
        assert self._log.read_text() == ""

    def client(self) -> http.client.HTTPConnection:
        return self._resources.enter_context(
            closing(http.client.HTTPConnection(*self.address, timeout=_TIMEOUT))
        )

    def raw(self) -> socket.socket:
        return self._keep(socket.create_connection(self.address))

    def receive(self) -> _Received:
        """Take the next request, at whichever frontend it arrives."""
        ready, _, _ = select.select(self.frontends, [], [], _TIMEOUT)
        assert ready, "no request has arrived"
        connection = self._keep(ready[0].accept()[0])
        stream = connection.makefile("rb")
        line = stream.readline().decode().strip()
        headers = http.client.parse_headers(stream)
        return _Received(connection, line, headers, stream.read(int(headers.get("Content-Length", 0))))

    def _keep(self, connection: socket.socket) -> socket.socket:
        connection.settimeout(_TIMEOUT)
        return self._resources.enter_context(closing(connection))


@pytest.fixture
def relayed_to(tmp_path: Path) -> Iterator[Callable[..., _Relayed]]:
    with ExitStack() as resources:
        yield lambda *weights: _Relayed(tmp_path, list(weights), resources)


@pytest.fixture
def relayed(relayed_to: Callable[..., _Relayed]) -> _Relayed:
    return relayed_to(1.0)


def test_a_request_and_its_answer_arrive_as_they_were_sent(relayed: _Relayed) -> None:
    client = relayed.client()
    body = gzip.compress(b"body")
    kept = {"Host": "models.internal", "Authorization": "Bearer none", "Content-Encoding": "gzip"}
    client.request("PUT", "/a%2Fb//c?d=%20e&f", body, {**kept, "X-Hop": "1", "Connection": "X-Hop"})
    received = relayed.receive()
    assert received.line == "PUT /a%2Fb//c?d=%20e&f HTTP/1.1"
    assert received.body == body
    of_this_client = {"Accept-Encoding": "identity", "Content-Length": str(len(body))}
    assert dict(received.headers.items()) == {**kept, **of_this_client}
    received.answer(b"packed", status=b"418 Teapot", headers=b"Content-Encoding: gzip\r\nA: 1\r\nA: 2\r\n")
    answer = client.getresponse()
    assert (answer.status, answer.reason, answer.read()) == (418, "Teapot", b"packed")
    assert (answer.headers.get_all("A"), answer.headers["Content-Encoding"]) == (["1", "2"], "gzip")
    assert answer.headers["Connection"] is None


@pytest.mark.parametrize(("method", "status"), [("HEAD", b"200 OK"), ("GET", b"204 No Content")])
def test_an_answer_without_a_body_leaves_the_connection_usable(
    relayed: _Relayed, method: str, status: bytes
) -> None:
    client = relayed.client()
    for _ in range(2):
        client.request(method, "/health")
        received = relayed.receive()
        received.connection.sendall(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n\r\n")
        received.connection.close()
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (int(status[:3]), b"")


def test_a_chunked_request_gets_its_length_too(relayed: _Relayed) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, iter([b'{"mod', b'el": "m"}']), encode_chunked=True)
    received = relayed.receive()
    assert json.loads(received.body) == {"model": "m", "max_completion_tokens": 10}
    assert received.headers["Transfer-Encoding"] is None
    received.answer(b"done")
    assert client.getresponse().read() == b"done"


def test_a_client_that_waits_to_be_told_to_continue_is_told(relayed: _Relayed) -> None:
    client = relayed.raw()
    client.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert client.recv(100).startswith(b"HTTP/1.1 100 ")
    client.sendall(b"{}")
    received = relayed.receive()
    assert (received.body, received.headers["Expect"]) == (b"{}", None)


def test_large_bodies_pass_both_ways(relayed: _Relayed) -> None:
    client, text = relayed.client(), "x" * _LARGE_BYTES
    client.request("POST", _CHAT, json.dumps({"prompt": text}))
    received = relayed.receive()
    assert json.loads(received.body) == {"prompt": text, "max_completion_tokens": 10}
    sender = threading.Thread(target=received.answer, args=(text.encode(),))
    sender.start()
    assert client.getresponse().read() == text.encode()
    sender.join()


def test_a_stream_arrives_piece_by_piece_as_it_is_sent(relayed: _Relayed) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, b'{"stream": true}')
    frontend = relayed.receive().connection
    frontend.sendall(_STREAM_HEAD)
    answer = client.getresponse()  # the head comes before there is any token
    for number in range(5):  # each piece is sent only once the one before has arrived
        piece = b"data: %d\n\n" % number
        frontend.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        assert answer.read1() == piece
    frontend.sendall(b"0\r\n\r\n")
    assert answer.read() == b""


@pytest.mark.parametrize("begun", [False, True], ids=["before-the-answer", "within-the-answer"])
def test_a_client_that_goes_away_frees_the_frontend(relayed: _Relayed, *, begun: bool) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, b'{"stream": true}')
    frontend = relayed.receive().connection
    if begun:
        frontend.sendall(_STREAM_HEAD + b"1\r\nx\r\n")
        client.getresponse().read1()
    client.close()
    assert frontend.recv(1) == b"", "the frontend would go on computing"


def test_an_answer_with_a_structure_comes_from_the_other_name_of_the_model(relayed: _Relayed) -> None:
    """A client that sees the other name, or an event in two parts, would not know its model."""
    client = relayed.client()
    client.request("POST", _CHAT, json.dumps({"model": "m", "tool_choice": "required", "stream": True}))
    received = relayed.receive()
    assert json.loads(received.body)["model"] == f"m{SUFFIX}"
    assert "Accept-Encoding" not in received.headers
    for part in (b'data: {"model":"m:stru', b'ctured"}\n\ndata:', b" [DONE]\n\nend"):
        event = b"%x\r\n%s\r\n" % (len(part), part)
        received.connection.sendall((_STREAM_HEAD if b"{" in part else b"") + event)
    received.connection.sendall(b"0\r\n\r\n")
    assert client.getresponse().read() == b'data: {"model":"m"}\n\ndata: [DONE]\n\nend'
    relayed.check()


def test_an_error_and_the_list_of_models_have_no_other_name(relayed: _Relayed) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, json.dumps({"model": "m", "n": 2}))
    relayed.receive().answer(
        f"no m{SUFFIX}".encode(), status=b"400 Bad Request", headers=b"X-Request-Id: 7\r\n"
    )
    answer = client.getresponse()
    assert (answer.read(), answer.headers["X-Request-Id"]) == (b"no m", "7")
    client = relayed.client()
    client.request("GET", "/v1/models")
    relayed.receive().answer(json.dumps({"data": [{"id": "m"}, {"id": f"m{SUFFIX}"}]}).encode())
    assert json.loads(client.getresponse().read()) == {"data": [{"id": "m"}]}
    relayed.check()


def test_an_answer_that_breaks_off_does_not_look_complete(relayed: _Relayed) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, b'{"stream": true}')
    frontend = relayed.receive().connection
    frontend.sendall(_STREAM_HEAD + b"1\r\nx\r\n")
    answer = client.getresponse()
    assert answer.read1() == b"x"
    frontend.close()
    with pytest.raises(http.client.IncompleteRead):
        answer.read()
    relayed.check()


def test_a_slow_client_slows_the_frontend_and_does_not_fill_the_memory(relayed: _Relayed) -> None:
    relayed.client().request("POST", _CHAT, b"{}")
    frontend = relayed.receive().connection
    frontend.settimeout(1.0)
    frontend.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n")
    with pytest.raises(TimeoutError):  # far below this much the buffers on the way are full
        frontend.sendall(b"x" * 500_000_000)


def test_requests_of_one_connection_are_shared_out_by_weight(relayed_to: Callable[..., _Relayed]) -> None:
    relayed = relayed_to(1.0, 3.0)
    client = relayed.client()
    client.connect()
    own = client.sock
    served: Counter[int] = Counter()
    for _ in range(8):
        client.request("POST", _CHAT, b"{}")
        received = relayed.receive()
        served[received.connection.getsockname()[1]] += 1
        received.answer()
        client.getresponse().read()
        assert client.sock is own, "the relay has ended a connection that could be used again"
    assert [served[frontend.getsockname()[1]] for frontend in relayed.frontends] == [2, 6]


def _assert_bad_gateway(client: http.client.HTTPConnection) -> None:
    answer = client.getresponse()
    error = json.loads(answer.read())["error"]
    assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (502, "application/json")
    assert error["message"].startswith("the frontend does not answer: ")
    assert error == {**error, "type": "server_error", "param": None, "code": "bad_gateway"}


def test_a_frontend_that_is_not_there_is_a_bad_gateway_and_the_relay_goes_on(
    relayed_to: Callable[..., _Relayed],
) -> None:
    relayed = relayed_to(1.0, 1.0)
    relayed.frontends.pop(0).close()
    client = relayed.client()
    for _ in range(2):  # the other frontend does not get its requests: nothing is tried again
        client.request("POST", _CHAT, b"{}")
        _assert_bad_gateway(client)
        client.request("POST", _CHAT, b"{}")
        relayed.receive().answer(b"here")
        assert client.getresponse().read() == b"here"
    relayed.check()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_is_sent_once(relayed: _Relayed, method: str) -> None:
    client = relayed.client()
    client.request(method, "/v1/models")
    relayed.receive().connection.close()
    _assert_bad_gateway(client)
    assert not select.select(relayed.frontends, [], [], 0.2)[0], "the request came again"


@pytest.mark.parametrize(
    "request_",
    [
        b"no http at all\r\n\r\n",
        b"\x16\x03\x01 a TLS greeting\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n\r\n",
    ],
    ids=["no-http", "tls", "bad-chunk"],
)
def test_what_is_no_http_is_a_bad_request_and_reaches_nobody(relayed: _Relayed, request_: bytes) -> None:
    client = relayed.raw()
    client.sendall(request_)
    assert client.recv(100).startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert not select.select(relayed.frontends, [], [], 0.2)[0]
    another = relayed.client()
    another.request("GET", "/")
    relayed.receive().answer(b"still here")
    assert another.getresponse().read() == b"still here"


def test_a_client_that_leaves_within_its_request_reaches_nobody(relayed: _Relayed) -> None:
    client = relayed.raw()
    client.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{")
    client.close()
    assert not select.select(relayed.frontends, [], [], 0.2)[0]
    relayed.check()


def _too_long(actual: int) -> bytes:
    return json.dumps({"details": {"type": "context_length", "limit": 100, "actual": actual}}).encode()


def test_an_added_answer_length_ends_at_the_context(relayed: _Relayed) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, b'{"model": "m"}')
    asked = relayed.receive()
    assert json.loads(asked.body)["max_completion_tokens"] == 10
    asked.answer(_too_long(106), status=b"400 Bad Request")
    again = relayed.receive()
    assert json.loads(again.body) == {"model": "m", "max_completion_tokens": 4}
    again.answer(b"answer")
    response = client.getresponse()
    assert (response.status, response.read()) == (200, b"answer")
    relayed.check()


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        pytest.param({"model": "m", "max_tokens": 10}, _too_long(106), id="the client states the length"),
        pytest.param({"model": "m"}, _too_long(110), id="no token is left"),
        pytest.param({"model": "m"}, b"bad", id="another reason"),
    ],
)
def test_other_refusals_reach_the_client(request_: dict[str, Any], refusal: bytes, relayed: _Relayed) -> None:
    client = relayed.client()
    client.request("POST", _CHAT, json.dumps(request_).encode())
    relayed.receive().answer(refusal, status=b"400 Bad Request")
    response = client.getresponse()
    assert (response.status, response.read()) == (400, refusal)
    relayed.check()
