"""Sends one request to the model's endpoint and classifies the outcome."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson
from yarl import URL

from batch.contracts.shard import Usage
from batch.worker.model_request import ModelRequest
from inference_blueprints.contracts.batch_limits import ANSWER_BYTES

_SUCCESS: Final = range(200, 300)
_TOO_BUSY: Final = frozenset({429, 503})
# Not the line's fault: the caller has no permission, or the model is missing, for example between two
# replicas.
_NOT_SERVED: Final = frozenset({401, 403, 404})
_TIMED_OUT: Final = 408
_SERVER_ERROR: Final = 500

#: Waits until an answer of this many bytes may be read.
Room = Callable[[int], Awaitable[None]]


class EndpointFault(enum.Enum):
    """Reason for a missing answer."""

    #: The endpoint is overloaded: all requests wait.
    REFUSED = "refused"
    #: The endpoint was not reached, or does not serve the model.
    UNAVAILABLE = "unavailable"
    #: An error on the way or in the endpoint, perhaps caused by this line.
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer of the endpoint to a line.

    Parameters
    ----------
    status
        HTTP status. 4xx means that the request is invalid.
    request_id
        The endpoint's identifier of the request.
    body
        JSON without line ends.
    usage
        Token counts of the answer.
    """

    status: int
    request_id: str
    body: bytes
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer. A retry may succeed.

    Parameters
    ----------
    reason
        Description without any part of the prompt.
    retry_after_seconds
        Pause that the endpoint asked for.
    answer
        The response, if it was an error of the endpoint.
    """

    fault: EndpointFault
    reason: str
    retry_after_seconds: float | None = None
    answer: Answer | None = None


class ModelEndpoint:
    """The endpoint of a model. An async context manager.

    Parameters
    ----------
    base
        Its address without a path.
    connect_seconds
        Timeout of a connection attempt, in seconds.
    headers
        Headers of each request.
    """

    def __init__(
        self, base: str, *, connect_seconds: float, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._base = base
        self._headers = headers
        self._connect_seconds = connect_seconds
        self._addresses: dict[str, URL] = {}
        self._limit = aiohttp.ClientTimeout(total=None)

    async def __aenter__(self) -> Self:
        # No limit here: `ConcurrencyLimit` is the only one.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def ask(
        self, path: str, request: ModelRequest, *, seconds: float, room: Room | None = None
    ) -> Answer | Failure:
        """Send a request once.

        Parameters
        ----------
        seconds
            Longest time until the answer is complete.
        room
            Called before a large answer is read. None if answers are small.
        """
        try:
            return await self._ask(path, request, self._timeout(seconds), room)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Failure(EndpointFault.UNAVAILABLE, f"no connection: {type(error).__name__}")
        except TimeoutError:
            return Failure(EndpointFault.BROKEN, f"no complete answer within {seconds:.0f} s")
        except (aiohttp.ClientError, OSError) as error:
            return Failure(EndpointFault.BROKEN, f"the connection was lost: {type(error).__name__}")

    async def _ask(
        self, path: str, request: ModelRequest, timeout: aiohttp.ClientTimeout, room: Room | None
    ) -> Answer | Failure:
        own = {"Content-Type": "application/json", "Idempotency-Key": request.idempotency_key}
        headers = {**self._headers, **own}
        async with self._session.post(
            self._address(path), data=request.body, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if room is not None:
                size = response.content_length
                await room(ANSWER_BYTES if size is None else min(size, ANSWER_BYTES))
            body = await _read(response)
            return _judge(response.status, response.headers, body)

    def _timeout(self, seconds: float) -> aiohttp.ClientTimeout:
        """Return the timeout of a whole request, from sending to the last byte.

        The value is nearly always the same.
        """
        if self._limit.total != seconds:
            self._limit = aiohttp.ClientTimeout(total=seconds, sock_connect=self._connect_seconds)
        return self._limit

    def _address(self, path: str) -> URL:
        """Return the full address of a path. Each path is parsed once."""
        if path not in self._addresses:
            self._addresses[path] = URL(self._base + path)
        return self._addresses[path]


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer up to the size limit. A longer answer is cut, and so is not valid JSON."""
    size = response.content_length
    if size is not None and size <= ANSWER_BYTES:
        return await response.read()
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > ANSWER_BYTES:
            response.close()
            break
    return bytes(content)


def _judge(status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
    """Classify a response."""
    document = _object(body)
    request_id = headers.get("x-request-id", "")
    if status in _SUCCESS:
        if document is None:
            return Failure(
                EndpointFault.BROKEN, f"status {status} with {len(body)} bytes that are not a JSON object"
            )
        return Answer(status, request_id, _one_line(body, document), Usage.of_answer(document))
    if document is None:
        document = {"error": {"message": body[:1000].decode(errors="replace"), "code": str(status)}}
    answer = Answer(status, request_id, orjson.dumps(document))
    if status in _TOO_BUSY:
        return Failure(EndpointFault.REFUSED, f"status {status}", _retry_after(headers), answer)
    if status in _NOT_SERVED:
        return Failure(EndpointFault.UNAVAILABLE, f"status {status}", answer=answer)
    if status == _TIMED_OUT or status >= _SERVER_ERROR:
        return Failure(EndpointFault.BROKEN, f"status {status}", _retry_after(headers), answer)
    return answer


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _one_line(body: bytes, document: dict[str, Any]) -> bytes:
    """Return an answer unchanged, unless it contains line ends."""
    return orjson.dumps(document) if b"\n" in body or b"\r" in body else body


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause that the endpoint asks for: seconds, or a date by the endpoint's own clock."""
    value = headers.get("Retry-After", "")
    if value.isdecimal():
        return float(value)
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return None
    return max(0.0, wait.total_seconds())
