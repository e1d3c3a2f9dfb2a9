"""Requests that leave the length of the answer open get one; all others pass as they came."""

import asyncio
import json

import pytest

from inference_blueprints.local.serving.answer_length import forward_requests, with_answer_length

_CHAT = "/v1/chat/completions"


class _Writer:
    """What a stream writer does, into memory."""

    def __init__(self) -> None:
        self.sent = b""
        self.ended = False

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def write_eof(self) -> None:
        self.ended = True


def _forward(*chunks: bytes) -> _Writer:
    async def run() -> _Writer:
        reader, writer = asyncio.StreamReader(), _Writer()
        forwarding = asyncio.ensure_future(forward_requests(reader, writer, 200))
        for chunk in chunks:
            reader.feed_data(chunk)
            await asyncio.sleep(0)
        reader.feed_eof()
        await forwarding
        return writer

    return asyncio.run(run())


def _post(path: str, body: bytes, *headers: bytes) -> bytes:
    lines = [b"POST %s HTTP/1.1" % path.encode(), b"Host: here", *headers, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _bodies(stream: bytes) -> list[dict]:
    """Cut a stream of requests at their Content-Length."""
    bodies = []
    while stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        (length,) = (int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"Content-Length" in line)
        bodies.append(json.loads(rest[:length]))
        stream = rest[length:]
    return bodies


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/completions", "max_tokens"),
        (_CHAT, "max_completion_tokens"),
        ("/v1/responses", "max_output_tokens"),
    ],
)
def test_an_open_length_becomes_the_workloads(path: str, field: str) -> None:
    assert json.loads(with_answer_length(path, b'{"model": "m"}', 200)) == {"model": "m", field: 200}


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_a_stated_length_stays(field: str) -> None:
    body = json.dumps({"model": "m", field: 5}).encode()
    assert with_answer_length(_CHAT, body, 200) == body


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"text"', b"\xff\xfe"])
def test_what_is_no_json_object_is_left_for_the_frontend_to_refuse(body: bytes) -> None:
    assert with_answer_length(_CHAT, body, 200) == body


def test_requests_on_one_connection_are_each_completed_however_they_are_cut() -> None:
    stream = _post(_CHAT, '{"model": "größer"}'.encode()) + _post(_CHAT, b'{"max_tokens": 3}')
    whole = _forward(stream)
    assert _bodies(whole.sent) == [{"model": "größer", "max_completion_tokens": 200}, {"max_tokens": 3}]
    assert whole.ended
    assert _forward(*(stream[index : index + 1] for index in range(len(stream)))).sent == whole.sent


@pytest.mark.parametrize(
    "stream",
    [
        b"GET /v1/models HTTP/1.1\r\nHost: here\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n",
        _post("/v1/embeddings", b'{"model": "m"}'),
        b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        _post(_CHAT, b"{}", b"Expect: 100-continue"),
        b"no http at all",
        b"\x16\x03\x01 a TLS greeting",
        b"x" * 200_000,
    ],
    ids=["get", "two-gets", "other-path", "chunked", "expect", "no-http", "tls", "endless-head"],
)
def test_everything_else_passes_unchanged(stream: bytes) -> None:
    assert _forward(stream).sent == stream


def test_a_client_that_leaves_within_a_body_ends_the_connection() -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        _forward(_post(_CHAT, b'{"model": "m"}')[:-3])
