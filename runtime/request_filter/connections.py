"""The two connections of a request: that of the caller, and that to the program behind the filter.

The bytes of an answer are passed on as they come, at the pace of the caller. If the caller goes, so does the
connection to the program, which thereby cancels the request. Only the arrival of a request has a time limit
here: for answers those of callers and of the program count.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from inference_contracts.request_filter import REMOVED_HEADER, FilterSettings
from request_filter.body_check import checked_body
from request_filter.caller_fields import is_api, is_page, kept_headers
from request_filter.error_form import MOST_BYTES, has_other_form, rewritten
from request_filter.http_head import (
    END,
    MOST_HEAD_BYTES,
    Header,
    RequestHead,
    ResponseHead,
    read_request,
    read_response,
    refusal_bytes,
    request_bytes,
    response_bytes,
)
from request_filter.refused_request import RefusedRequestError
from request_filter.request_body import BodyReader
from request_filter.suspects import CHECK_SECONDS, RequestRun, SuspectMemory

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
#: The end of an answer that is kept, to see whether it is whole.
_TAIL_BYTES: Final = 2048
#: What a caller may send ahead while its request is in progress.
_MOST_AHEAD_BYTES: Final = 256 * 1024
#: An error within a stream whose status was 200 (the APIs of OpenAI and Anthropic).
_ERROR_EVENT: Final = re.compile(rb'(?:^|\n)(?:data: ?\{"error"|event: ?(?:error|response\.failed))')
#: Statuses of a program that lost its worker. 529 only says that it is busy.
_FAILED: Final = frozenset({500, 502, 503, 504})
_FIRST_FINAL: Final = 200
_NO_BODY: Final = frozenset({204, 304})


@dataclass(slots=True, eq=False)
class Door:
    """What all connections share."""

    settings: FilterSettings
    allowed: frozenset[str]
    """Fields and headers of callers that are passed on although they would be removed."""
    program: tuple[str, int]
    """Host and port of the program."""
    suspects: SuspectMemory
    """The memory of failed requests."""
    poke: Callable[[], None]
    """Called when a request has failed."""
    ends: bool = False
    """Whether the program has been told to end, so that connections are closed after their answer."""
    buffered: int = 0
    """Bytes of bodies that are being read."""


class CallerConnection(asyncio.Protocol):
    """The connection of a caller, with one request after the other."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._buffer = bytearray()
        self._head: RequestHead | None = None
        self._body: BodyReader | None = None
        self._counted = 0
        self._program: ProgramConnection | None = None
        self._asking: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._paused = False
        self._stays = True
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._buffer += data
        if self._asking is None:
            self._advance()
        elif len(self._buffer) > _MOST_AHEAD_BYTES:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- the reason does not matter
        """Note the end of the connection."""
        self._arrived()
        self._count(0)
        if self._program:
            self._program.leave()
        if self._asking:
            self._asking.cancel()

    def pause_writing(self) -> None:
        """Stop the program's answer: the caller is slower."""
        self._paused = True
        if self._program:
            self._program.transport.pause_reading()

    def resume_writing(self) -> None:
        """Let the program's answer go on."""
        self._paused = False
        if self._program:
            self._program.transport.resume_reading()

    def _advance(self) -> None:
        """Read what has come, until a request is complete."""
        if self._late is None:
            seconds = self._door.settings.request_seconds
            self._late = asyncio.get_running_loop().call_later(seconds, self._refuse_slow)
        try:
            if self._head is None and not self._read_head():
                return
            assert self._head is not None  # noqa: S101 -- for the type checker
            if self._body is not None:
                complete = self._body.take(self._buffer)
                self._count(self._body.size)
                if not complete:
                    return
            content = self._body.content() if self._body else b""
            self._ask(self._head, content)
        except RefusedRequestError as refusal:
            self._refuse(refusal)

    def _read_head(self) -> bool:
        # A caller may send empty lines before a request (RFC 9112, section 2.2).
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]
        end = self._buffer.find(END)
        if end > MOST_HEAD_BYTES or (end < 0 and len(self._buffer) > MOST_HEAD_BYTES):
            raise RefusedRequestError(
                431, f"the headers have more than {MOST_HEAD_BYTES:,} bytes", "headers_too_large"
            )
        if end < 0:
            return False
        content = bytes(self._buffer[:end])
        del self._buffer[: end + len(END)]
        head = read_request(content)
        self._head, self._stays = head, head.stays
        page = is_page(head.method, head.path)
        if not page and not is_api(head.path):
            raise RefusedRequestError(404, f"{head.path[:200]}: not a path of this API", "unknown_path")
        if head.method not in {"GET", "HEAD", "POST", "DELETE"}:
            raise RefusedRequestError(405, f"{head.method}: not a method of this API", "unknown_method")
        if head.length != 0:
            if page:
                raise RefusedRequestError(400, "a page takes no body", "bad_request")
            if self._door.buffered >= self._door.settings.buffered_bytes:
                message = "too many bodies are being read at once; ask again"
                raise RefusedRequestError(503, message, "busy", retry_after=1)
            self._body = BodyReader(head.length, self._door.settings.body_bytes)
            if head.waits:
                self.transport.write(_CONTINUE)
        return True

    def _ask(self, head: RequestHead, content: bytes) -> None:
        """Check a complete request and pass it on."""
        self._arrived()
        door = self._door
        coding = head.value("content-encoding").lower()
        if coding not in {"", "identity"}:
            found = f"content-encoding: got {coding[:40]!r}; send the body as it is"
            raise RefusedRequestError(415, found, "unsupported_encoding")
        headers, removed = kept_headers(head.headers, door.allowed, door.settings.priority_headers)
        run = None
        if content:
            digest = hashlib.sha256(head.path.encode() + b"\0" + content).digest()
            body = checked_body(
                content, head.path, head.value("content-type"), door.settings.limits, door.allowed
            )
            content, removed = body.content, [*removed, *body.removed]
            if door.settings.discovery != "none":
                run = door.suspects.start(digest, asyncio.get_running_loop().time())
        added = ((REMOVED_HEADER, ", ".join(removed)),) if removed else ()
        message = request_bytes(head, headers, len(content)) + content
        program = ProgramConnection(self, head, message, added, run)
        self._program = program
        self._asking = asyncio.get_running_loop().create_task(self._connect(program))

    async def _connect(self, program: ProgramConnection) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: program, *self._door.program)
        except OSError:
            if program.run:
                self._door.suspects.failed(program.run, asyncio.get_running_loop().time())
            message = "the model's entry point is starting or ending; ask again"
            self._refuse(RefusedRequestError(503, message, "not_ready", retry_after=1))

    def answered(self, head: ResponseHead, added: tuple[Header, ...]) -> None:
        """Pass the head of an answer on."""
        ends_with_connection = not head.chunked and head.length is None
        self._stays = self._stays and not self._door.ends and not ends_with_connection
        self.transport.write(response_bytes(head, added, stays=self._stays))
        if self._paused and self._program:
            self._program.transport.pause_reading()

    def finished(self, program: ProgramConnection, *, whole: bool) -> None:
        """Note that the program has closed its connection.

        whole: Whether its answer was complete.
        """
        self._program = None
        self._note(program, whole=whole and not program.failed)
        if self.transport.is_closing():
            return
        if program.head is None:
            message = "the model's entry point closed the connection; ask again"
            self._refuse(RefusedRequestError(502, message, "bad_gateway", retry_after=1))
        elif not whole:
            # An interrupted answer must not look complete.
            self.transport.abort()
        else:
            self._next()

    def left(self, program: ProgramConnection) -> None:
        """Note that the caller has gone before its answer was complete."""
        if program.run:
            self._door.suspects.failed(program.run, asyncio.get_running_loop().time())
            self._door.poke()

    def _note(self, program: ProgramConnection, *, whole: bool) -> None:
        if program.run is None:
            return
        if whole:
            self._door.suspects.answered(program.run)
            return
        now = asyncio.get_running_loop().time()
        self._door.suspects.failed(program.run, now)
        self._door.suspects.check(program.run, now, CHECK_SECONDS)
        self._door.poke()

    def _next(self) -> None:
        """Go on with the next request of the connection."""
        self._arrived()
        self._count(0)
        self._head, self._body, self._program, self._asking = None, None, None, None
        if not self._stays:
            self.transport.close()
        elif self._buffer:
            # Later, because thousands of small requests may have come at once.
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        if self._buffer and self._asking is None and not self.transport.is_closing():
            self._advance()

    def _arrived(self) -> None:
        """Note that a request is complete, or that it is not waited for any more."""
        if self._late:
            self._late.cancel()
            self._late = None

    def _refuse_slow(self) -> None:
        seconds = self._door.settings.request_seconds
        self._refuse(RefusedRequestError(408, f"not complete after {seconds:.0f} seconds", "too_slow"))

    def _refuse(self, refusal: RefusedRequestError) -> None:
        """Answer with an error. The connection stays open if the request has been read to its end."""
        head = self._head
        complete = head is not None and (head.length == 0 or (self._body is not None and self._body.complete))
        self._stays = self._stays and complete and not self._door.ends
        with_body = head is None or head.method != "HEAD"
        self.transport.write(refusal_bytes(refusal, stays=self._stays, with_body=with_body))
        self._next()

    def _count(self, size: int) -> None:
        """Count the bytes of the body towards those that are being read."""
        self._door.buffered += size - self._counted
        self._counted = size


class ProgramConnection(asyncio.Protocol):
    """The connection to the program, for one request.

    request: Head of the request.
    message: The whole request.
    added: Headers to add to the answer.
    run: The request's place in the memory of failed requests. None for one that cannot fail a worker.
    """

    def __init__(
        self,
        caller: CallerConnection,
        request: RequestHead,
        message: bytes,
        added: tuple[Header, ...],
        run: RequestRun | None,
    ) -> None:
        self._caller, self._request, self._message, self._added = caller, request, message, added
        self._error: bytearray | None = None
        self.run = run
        self.head: ResponseHead | None = None
        self._buffer = b""
        self._tail = b""
        self._size = 0
        self._left = False
        self.transport: asyncio.Transport

    @property
    def failed(self) -> bool:
        """Whether the answer says that the program could not answer."""
        status = self.head.status if self.head else 502
        return status in _FAILED or _ERROR_EVENT.search(self._tail) is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._message)
        self._message = b""
        if self._left:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._left:
            return
        if self.head is None:
            data = self._read_head(data)
            if not data:
                return
        self._size += len(data)
        self._tail = data[-_TAIL_BYTES:] if len(data) >= _TAIL_BYTES else (self._tail + data)[-_TAIL_BYTES:]
        if self._error is None:
            self._caller.transport.write(data)
            return
        self._error += data
        says_its_end = self.head is not None and (self.head.chunked or self.head.length is not None)
        if says_its_end and self._is_whole():
            self._pass_error_on(in_openais_form=True)
        elif len(self._error) > MOST_BYTES:
            self._pass_error_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        if self._left:
            return
        whole = exc is None and self._is_whole()
        if self._error is not None:
            self._pass_error_on(in_openais_form=whole)
        self._caller.finished(self, whole=whole)

    def leave(self) -> None:
        """Close the connection because the caller has gone."""
        if self._left:
            return
        self._left = True
        self._caller.left(self)
        if hasattr(self, "transport"):
            self.transport.abort()

    def _read_head(self, data: bytes) -> bytes:
        """Read the head of the answer, and return what comes after it."""
        self._buffer += data
        end = self._buffer.find(END)
        if end < 0:
            if len(self._buffer) > MOST_HEAD_BYTES:
                self.transport.abort()
            return b""
        head = read_response(self._buffer[:end])
        rest, self._buffer = self._buffer[end + len(END) :], b""
        if head is None:
            self.transport.abort()
            return b""
        if head.status < _FIRST_FINAL:
            return self._read_head(rest) if rest else b""
        self.head = head
        if has_other_form(head, self._request.method, self._request.path):
            self._error = bytearray()
        else:
            self._caller.answered(head, self._added)
        return rest

    def _pass_error_on(self, *, in_openais_form: bool = False) -> None:
        """Pass on an error that was kept until it was whole, or was too large to be kept."""
        assert self.head is not None  # noqa: S101 -- for the type checker
        assert self._error is not None  # noqa: S101 -- for the type checker
        raw, self._error = bytes(self._error), None
        head, body = (in_openais_form and rewritten(self.head, raw)) or (self.head, raw)
        self._caller.answered(head, self._added)
        self._caller.transport.write(body)

    def _is_whole(self) -> bool:
        head = self.head
        if head is None:
            return False
        if self._request.method == "HEAD" or head.status in _NO_BODY:
            return True
        if head.chunked:
            return self._tail.endswith(_LAST_CHUNK)
        return head.length is None or self._size == head.length
