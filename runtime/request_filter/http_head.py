"""Reads and writes the heads of HTTP/1.1 messages, and refuses what two readers could understand differently.

A request is written anew from what was read, so a server behind it sees one request with one length
(RFC 9112, sections 2.2, 3, 5 and 6.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from request_filter.refused_request import RefusedRequestError

Header = tuple[str, str]
#: Largest size of a head, in bytes.
MOST_HEAD_BYTES: Final = 64 * 1024
END: Final = b"\r\n\r\n"
#: Headers about one connection or about the form of the body.
_OWN: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "upgrade", "content-length", "expect", "http2-settings"),
    }
)
_MOST_HEADERS: Final = 128
_REQUEST_LINE: Final = re.compile(r"([A-Z]{3,16}) (/[\x21-\x7e]*) HTTP/1\.1")
_STATUS_LINE: Final = re.compile(r"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([^\r\n\0]*))?")
_HEADER: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n\0]*?)[ \t]*")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")
_REASONS: Final = {
    100: "Continue",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request."""

    method: str
    target: str
    """Path with query."""
    headers: tuple[Header, ...]
    """Headers with names in lower case, without those about the connection and the body."""
    length: int | None
    """Length of the body. None if it comes in chunks."""
    waits: bool
    """Whether the caller waits for `100 Continue`."""
    stays: bool
    """Whether the connection stays open."""

    @property
    def path(self) -> str:
        """The path without the query."""
        return self.target.partition("?")[0]

    def value(self, name: str) -> str:
        """Return the value of a header. Empty without it."""
        return next((value for each, value in self.headers if each == name), "")


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response."""

    status: int
    reason: str
    """`status`, `reason`: Status and its text."""
    headers: tuple[Header, ...]
    """Headers with names in lower case, without those about the connection and the body."""
    length: int | None
    """Length of the body. None if it comes in chunks, or ends with the connection."""
    chunked: bool
    """Whether it comes in chunks."""


def read_request(content: bytes) -> RequestHead:
    """Return the head of a request. Raises RefusedRequestError if it is not exactly HTTP/1.1."""
    first, *lines = _lines(content)
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise _bad("the first line must be METHOD /path HTTP/1.1")
    headers = _headers(lines)
    if headers is None:
        raise _bad(f"a header is not NAME: VALUE, or there are more than {_MOST_HEADERS}")
    lengths = {value for name, value in headers if name == "content-length"}
    codings = [value.lower() for name, value in headers if name == "transfer-encoding"]
    length: int | None = 0
    if codings:
        if codings != ["chunked"] or lengths:
            raise _bad("transfer-encoding must be 'chunked', without content-length")
        length = None
    elif lengths:
        (text, *others) = lengths
        if others or not _LENGTH.fullmatch(text):
            raise _bad("content-length must be one whole number")
        length = int(text)
    words = _named_by_connection(headers)
    return RequestHead(
        method=line[1],
        target=line[2],
        headers=_without(headers, words),
        length=length,
        waits=any(name == "expect" and value.lower() == "100-continue" for name, value in headers),
        stays="close" not in words,
    )


def read_response(content: bytes) -> ResponseHead | None:
    """Return the head of a response. None if it is not one."""
    first, *lines = _lines(content)
    line = _STATUS_LINE.fullmatch(first)
    headers = _headers(lines)
    if line is None or headers is None:
        return None
    chunked = any(name == "transfer-encoding" and "chunked" in value.lower() for name, value in headers)
    text = next((value for name, value in headers if name == "content-length"), "")
    return ResponseHead(
        status=int(line[1]),
        reason=line[2] or "",
        headers=_without(headers, _named_by_connection(headers)),
        length=int(text) if not chunked and _LENGTH.fullmatch(text) else None,
        chunked=chunked,
    )


def request_bytes(head: RequestHead, headers: Iterable[Header], length: int) -> bytes:
    """Return the head to send to the program: one request per connection.

    head: The caller's head.
    headers: The headers that are passed on.
    length: Length of the body.
    """
    lines = [f"{head.method} {head.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    lines.append("connection: close")
    if length or head.method == "POST":
        lines.append(f"content-length: {length}")
    return ("\r\n".join(lines)).encode("latin-1") + END


def response_bytes(head: ResponseHead, added: Iterable[Header], *, stays: bool) -> bytes:
    """Return the head of an answer for the caller.

    head: The program's head.
    added: Further headers.
    stays: Whether the connection stays open.
    """
    lines = [
        f"HTTP/1.1 {head.status} {head.reason}",
        *(f"{name}: {value}" for name, value in (*head.headers, *added)),
    ]
    if head.chunked:
        lines.append("transfer-encoding: chunked")
    elif head.length is not None:
        lines.append(f"content-length: {head.length}")
    if not stays:
        lines.append("connection: close")
    return ("\r\n".join(lines)).encode("latin-1") + END


def refusal_bytes(refusal: RefusedRequestError, *, stays: bool, with_body: bool = True) -> bytes:
    """Return a whole answer with an error."""
    body = refusal.body
    retry = () if refusal.retry_after is None else (("retry-after", str(refusal.retry_after)),)
    head = ResponseHead(
        refusal.status,
        _REASONS.get(refusal.status, "Error"),
        (("content-type", "application/json"), *retry),
        len(body),
        chunked=False,
    )
    return response_bytes(head, (), stays=stays) + (body if with_body else b"")


def _lines(content: bytes) -> list[str]:
    return content.decode("latin-1").split("\r\n")


def _headers(lines: list[str]) -> tuple[Header, ...] | None:
    """Return the headers. None if a line is not one."""
    if len(lines) > _MOST_HEADERS:
        return None
    found = [_HEADER.fullmatch(line) for line in lines]
    if not all(found):
        return None
    return tuple((each[1].lower(), each[2]) for each in found if each)


def _named_by_connection(headers: Iterable[Header]) -> set[str]:
    return {
        word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")
    }


def _without(headers: Iterable[Header], further: set[str]) -> tuple[Header, ...]:
    return tuple(each for each in headers if each[0] not in _OWN and each[0] not in further)


def _bad(message: str) -> RefusedRequestError:
    return RefusedRequestError(400, message, "bad_request")
