"""What a caller sends is read as the program behind the filter will read it, or refused."""

from __future__ import annotations

import pytest
from request_filter.caller_fields import is_api, kept_headers
from request_filter.http_head import read_request, read_response, request_bytes
from request_filter.refused_request import RefusedRequestError
from request_filter.request_body import BodyReader

POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: m"

#: Requests that two servers may end at different bytes (RFC 9112, section 11.2), or that are not HTTP/1.1.
SMUGGLED = [
    POST + b"\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
    POST + b"\r\ncontent-length: 5\r\ncontent-length: 6",
    POST + b"\r\ncontent-length: +5",
    POST + b"\r\ncontent-length: 5, 5",
    POST + b"\r\ntransfer-encoding: gzip, chunked",
    POST + b"\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked",
    POST + b"\r\ntransfer-encoding : chunked",
    POST + b"\r\nx: 1\r\n folded: 2",
    POST + b"\r\nx: a\nb: c",
    POST + b"\r\nx: \0",
    b"POST http://other/v1/models HTTP/1.1\r\nhost: m",
    b"POST /v1/models HTTP/1.0\r\nhost: m",
    b"POST /v1/a b HTTP/1.1\r\nhost: m",
    POST + b"\r\nx: 1" * 200,
]


@pytest.mark.parametrize("head", SMUGGLED)
def test_a_head_that_two_servers_may_read_differently_is_refused(head: bytes) -> None:
    """Red if a second request can hide within a first one, past the checks."""
    with pytest.raises(RefusedRequestError) as refused:
        read_request(head)
    assert refused.value.status == 400


def test_a_request_is_written_anew() -> None:
    """Red if headers about the caller's connection, or of its form of a body, reach the program."""
    head = read_request(POST + b"\r\nConnection: x-own, close\r\nX-Own: 1\r\nTE: trailers\r\nAccept: a, b")
    kept, _ = kept_headers(head.headers, frozenset(), {})
    assert request_bytes(head, kept, 7).decode() == (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\naccept: a, b\r\nconnection: close\r\n"
        "content-length: 7\r\n\r\n"
    )
    assert not head.stays


def test_a_post_without_a_body_says_so_and_other_methods_say_nothing() -> None:
    """Red if a server waits for a body that never comes, or refuses with 411 (RFC 9110, section 8.6)."""
    assert b"content-length: 0\r\n" in request_bytes(read_request(POST), (), 0)
    asked = read_request(POST.replace(b"POST", b"GET", 1))
    assert b"content-length" not in request_bytes(asked, (), 0)


def test_chunks_of_an_answer_come_before_its_stated_length() -> None:
    """Red if the end of a body is looked for at two places (RFC 9112, section 6.3)."""
    head = read_response(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked")
    assert head is not None
    assert (head.chunked, head.length) == (True, None)


@pytest.mark.parametrize(
    "chunks",
    [b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: 1\r\n\r\n", b"005\r\nabcde\r\n0\r\n\r\n"],
)
def test_chunks_are_one_body_wherever_they_are_cut(chunks: bytes) -> None:
    """Red if a body in chunks, as of a client that streams its request, is cut or has bytes of its frames."""
    reader, buffer = BodyReader(None, 100), bytearray()
    done = []
    for byte in chunks:
        buffer.append(byte)
        done.append(reader.take(buffer))
    assert done == [False] * (len(chunks) - 1) + [True]
    assert (reader.content(), bytes(buffer)) == (b"abcde", b"")


@pytest.mark.parametrize("chunks", [b"3\r\nabcd\r\n", b"x\r\n", b"-1\r\n", b"1" * 2000, b"0x1\r\na\r\n"])
def test_chunks_in_another_form_are_refused(chunks: bytes) -> None:
    with pytest.raises(RefusedRequestError):
        BodyReader(None, 10_000).take(bytearray(chunks))


@pytest.mark.parametrize(("length", "sent"), [(11, b""), (None, b"6\r\nabcdef\r\n6\r\nabcdef\r\n")])
def test_a_body_has_a_largest_size(length: int | None, sent: bytes) -> None:
    """Red if a caller can fill the memory of a frontend."""
    with pytest.raises(RefusedRequestError) as refused:
        BodyReader(length, 10).take(bytearray(sent))
    assert refused.value.status == 413


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1/chat/completions", True),
        ("/v1/models/qwen3-8b", True),
        # Pages for operators: the first one stops a model, the second one loads files.
        ("/busy_threshold", False),
        ("/v1/load_lora_adapter", False),
        ("/v1/rl/workers", False),
        ("/v1/models/../../busy_threshold", False),
        ("/v1/models/%2e%2e/%2e%2e/busy_threshold", False),
        ("//v1/models", False),
        ("/v1", False),
    ],
)
def test_only_paths_of_the_api_are_passed_on(path: str, known: bool) -> None:  # noqa: FBT001
    assert is_api(path) == known


def test_callers_choose_no_worker_and_no_priority() -> None:
    """Red if a caller pins its requests to a worker, or goes before all others, with a header of Dynamo's."""
    batch = {"x-dynamo-request-priority": "-1", "x-dynamo-meta-policy-class": "batch"}
    sent = [
        ("authorization", "Bearer t"),
        ("x-dynamo-worker-instance-id", "1"),
        ("x-dynamo-request-strict-priority", "100"),
        ("x-dynamo-request-priority", "-1"),
        ("x-dynamo-request-priority", "5"),
        ("x-dynamo-meta-policy-class", "batch"),
        ("x-dynamo-session-id", "s"),
        ("x-data-parallel-rank", "0"),
        ("x-gateway-destination-endpoint", "169.254.169.254:80"),
        ("x-request-id", "r"),
    ]
    kept, removed = kept_headers(sent, frozenset({"x-data-parallel-rank"}), batch)
    assert [name for name, _ in kept] == [
        "authorization",
        # As batch does: to give way.
        "x-dynamo-request-priority",
        "x-dynamo-meta-policy-class",
        "x-dynamo-session-id",
        "x-data-parallel-rank",
        "x-request-id",
    ]
    assert removed[2:] == ["x-dynamo-request-priority", "x-gateway-destination-endpoint"]
    assert not kept_headers([("x-dynamo-request-priority", "-1")], frozenset(), {})[0]
