"""Sends one request to the model's endpoint and classifies the outcome."""

from __future__ import annotations

import asyncio
import enum
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson
from yarl import URL

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardLine, Usage
from batch.worker.door_keys import DoorKeys
from batch.worker.image_loader import HeldImages, Images
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_contracts.batch_limits import ANSWER_BYTES
from inference_contracts.door_headers import BUDGET_SCOPE
from inference_contracts.request_filter import CHECKED_CODE, SUSPECT_CODE

# Builds requests from lines: takes the body of the line, and inserts its images.


class InvalidLineError(Exception):
    """No request can be made from a line. The message names the reason."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The request of a line. Retries send it unchanged."""

    body: bytes
    idempotency_key: str
    """Equal for equal requests of a job, and different for all others."""
    images: HeldImages | None = None
    """Images that hold memory for this request."""
    team: str = ""
    """Team that it is charged to at the front door."""


class Requests:
    """Makes the requests of a job. Templates were rendered when the input was checked.

    model: Name of the model at the front door. None if the endpoint knows it by its own.
    """

    def __init__(self, description: JobDescription, images: Images, model: str | None = None) -> None:
        self._description = description
        self._images = images
        self._model = model or description.model

    async def make(self, line: ShardLine) -> ModelRequest:
        """Make the request of a line. Its images hold memory until `let_go`.

        Raises InvalidLineError if its body is not an object, or has no prompt that its images can go before.
        Raises ImageError if an image cannot be sent. Raises ImageNotReadError if S3 does not give an image
        now.
        """
        if not isinstance(line.body, Mapping):
            raise InvalidLineError("the body of the line is not an object")
        body = {**line.body, "model": self._model}
        if self._description.endpoint == IMAGES_PATH and body.get("seed") is None:
            body["seed"] = _seed(self._description.job, line.custom_id)
        if not line.images:
            return self._seal(line, body, None)
        message = _only_message(body)
        images = await self._images.read(line.images, self._description.data_prefixes)
        messages = [{**message, "content": _with_images(message["content"], images.urls)}]
        return self._seal(line, {**body, "messages": messages}, images)

    @property
    def images_read_at(self) -> float:
        """When the images of a line were last read, by the event loop's clock."""
        return self._images.read_at

    def let_go(self, request: ModelRequest) -> None:
        """Release the memory of a request.

        request: A request of `make`. It must not be sent again.
        """
        if request.images is not None:
            self._images.let_go(request.images)

    def _seal(self, line: ShardLine, values: Mapping[str, Any], images: HeldImages | None) -> ModelRequest:
        body = orjson.dumps(values)
        names = orjson.dumps([self._description.job, line.custom_id])
        key = hashlib.sha256(names + b"\n" + body).hexdigest()
        return ModelRequest(body, key, images, self._description.team)


def _seed(job: str, custom_id: str) -> int:
    """Return the seed of a line's images, so that a line that runs again asks for the same images.

    Without one, vllm-omni 0.30.0 chooses a random seed of 32 bits for each request (`generate_images` of
    `entrypoints/openai/api_server.py`).
    """
    return int.from_bytes(hashlib.sha256(orjson.dumps([job, custom_id])).digest()[:4])


def _only_message(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of a body that a template made."""
    match body.get("messages"):
        case [{"content": str()} as message]:
            return dict(message)
    raise InvalidLineError("the line has images, but not exactly one message with a text")


def _with_images(prompt: str, urls: Sequence[str]) -> list[dict[str, Any]]:
    """Return the content of a message with images before the text."""
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [*pictures, {"type": "text", "text": prompt}]


_SUCCESS: Final = range(200, 300)
#: 529 is Dynamo's answer while all workers are too busy (`http/service/openai.rs` of ai-dynamo 1.6.1).
_TOO_BUSY: Final = frozenset({429, 529})
#: No worker is there, or it has died with the request.
_NO_WORKER: Final = frozenset({502, 503})
_HELD: Final = frozenset({SUSPECT_CODE, CHECKED_CODE})
#: Code of an answer if a budget of US dollars has no room for the request.
_NO_MONEY: Final = "insufficient_quota"
#: Time after which a worker has begun with a request, whoever says that it is gone.
_BEGUN_SECONDS: Final = 0.25
# Not the line's fault: the caller has no permission, or the model is missing, for example between two
# replicas.
_NOT_SERVED: Final = frozenset({401, 403, 404})
_TIMED_OUT: Final = 408
_SERVER_ERROR: Final = 500

#: For the list of models. Dynamo's frontend lists a model while it has workers that can serve it
#: (`Model::is_displayable`, lib/llm/src/discovery/model.rs of ai-dynamo); an engine's server lists its own.
_LIST_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)

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
    #: Whoever computed the answer is gone, perhaps because of this line.
    LOST = "lost"
    #: This request is refused for a time, and no other: workers died while they computed it.
    HELD = "held"
    #: A budget at the front door has no room for the request. It says nothing about the endpoint.
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer of the endpoint to a line."""

    status: int
    """HTTP status. 4xx means that the request is invalid."""
    request_id: str
    """The endpoint's identifier of the request."""
    body: bytes
    """JSON without line ends."""
    usage: Usage = field(default_factory=Usage)
    """Token counts of the answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer. A retry may succeed."""

    fault: EndpointFault
    reason: str
    """Description without any part of the prompt."""
    retry_after_seconds: float | None = None
    """Pause that the endpoint asked for."""
    answer: Answer | None = None
    """The response, if it was an error of the endpoint."""
    is_suspected: bool = False
    """Whether the endpoint itself suspects the request of ending workers."""
    is_money: bool = False
    """Whether the budget that refuses it is one of money."""

    @property
    def message(self) -> str:
        """What the endpoint says about the error."""
        error = (_object(self.answer.body) or {}).get("error") if self.answer else None
        return str(error.get("message") or self.reason) if isinstance(error, dict) else self.reason

    @property
    def status(self) -> int | None:
        """Status of the response; None if there was none."""
        return self.answer.status if self.answer else None

    @property
    def is_load(self) -> bool:
        """Whether fewer requests may help: the endpoint is too busy, is not there, or has no worker."""
        if self.fault is EndpointFault.LOST:
            return self.answer is not None
        return self.fault in {EndpointFault.REFUSED, EndpointFault.UNAVAILABLE}

    @property
    def is_server_error(self) -> bool:
        """Whether the endpoint answered that it failed. An engine that ends may say so to its requests."""
        return self.answer is not None and self.answer.status == _SERVER_ERROR


class ModelEndpoint:
    """The endpoint of a model. An async context manager.

    base: Its address without a path.
    connect_seconds: Timeout of a connection attempt, in seconds.
    headers: Headers of each request.
    keys: Keys of the teams, if it is the front door.
    """

    def __init__(
        self,
        base: str,
        *,
        connect_seconds: float,
        headers: Mapping[str, str] = MappingProxyType({}),
        keys: DoorKeys | None = None,
    ) -> None:
        self.base = base
        self._headers = headers
        self._keys = keys
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

        seconds: Longest time until the answer is complete.
        room: Called before a large answer is read. None if answers are small.
        """
        try:
            return await self._ask(path, request, self._timeout(seconds), room)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Failure(EndpointFault.UNAVAILABLE, f"no connection: {type(error).__name__}")
        except TimeoutError:
            return Failure(EndpointFault.BROKEN, f"no complete answer within {seconds:.0f} s")
        except (aiohttp.ClientError, OSError) as error:
            return Failure(EndpointFault.LOST, f"the connection was lost: {type(error).__name__}")

    async def serves(self, model: str) -> bool | None:
        """Return whether the endpoint has a worker of a model now. None if it does not say so."""
        try:
            async with self._session.get(
                self._address("/v1/models"), timeout=_LIST_TIMEOUT, allow_redirects=False
            ) as response:
                listed = _object(await _read(response)) if response.status in _SUCCESS else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None
        models = (listed or {}).get("data")
        if not isinstance(models, list):
            return None
        return any(isinstance(each, dict) and each.get("id") == model for each in models)

    async def _ask(
        self, path: str, request: ModelRequest, timeout: aiohttp.ClientTimeout, room: Room | None
    ) -> Answer | Failure:
        own = {"Content-Type": "application/json", "Idempotency-Key": request.idempotency_key}
        headers = {**self._headers, **own}
        key = None
        if self._keys is not None:
            key = await self._keys.of(request.team)
            if key is None:
                return Failure(EndpointFault.UNAVAILABLE, f"no key for team {request.team} at the front door")
            headers["Authorization"] = f"Bearer {key}"
        begin = asyncio.get_running_loop().time()
        async with self._session.post(
            self._address(path), data=request.body, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            if room is not None:
                size = response.content_length
                await room(ANSWER_BYTES if size is None else min(size, ANSWER_BYTES))
            body = await _read(response)
            if self._keys is not None and key is not None and response.status == HTTPStatus.UNAUTHORIZED:
                await self._keys.refused(key)
            return _judge(response.status, response.headers, body, asyncio.get_running_loop().time() - begin)

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
            self._addresses[path] = URL(self.base + path)
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


def _judge(status: int, headers: Mapping[str, str], body: bytes, seconds: float) -> Answer | Failure:
    """Classify a response that came after this time."""
    document = _object(body)
    request_id = headers.get("x-request-id", "")
    if status in _SUCCESS:
        if document is None:
            return Failure(
                EndpointFault.BROKEN, f"status {status} with {len(body)} bytes that are not a JSON object"
            )
        return Answer(status, request_id, _one_line(body, document), Usage.of_answer(document))
    shown = document or {"error": {"message": body[:1000].decode(errors="replace"), "code": str(status)}}
    answer = Answer(status, request_id, orjson.dumps(shown))
    pause, code = _retry_after(headers), _error_code(document)
    if status == HTTPStatus.TOO_MANY_REQUESTS and (code == _NO_MONEY or BUDGET_SCOPE in headers):
        is_money = code == _NO_MONEY
        return Failure(EndpointFault.BUDGET, f"status {status}: {code}", pause, answer, is_money=is_money)
    if status in _NO_WORKER and code in _HELD:
        return Failure(EndpointFault.HELD, f"status {status}: {code}", pause, answer, code == SUSPECT_CODE)
    was_begun = pause is None and (document is not None or seconds >= _BEGUN_SECONDS)
    fault = _fault(status, was_begun=was_begun)
    return answer if fault is None else Failure(fault, f"status {status}", pause, answer)


def _fault(status: int, *, was_begun: bool) -> EndpointFault | None:
    """Return what a status says; None if the request itself is wrong.

    was_begun: Whether a worker may have begun to compute the answer. A load balancer that finds none says so
        at once, with a page of its own, and whoever is too busy names a time to come again.
    """
    if status in _NO_WORKER:
        return EndpointFault.LOST if was_begun else EndpointFault.REFUSED
    if status in _TOO_BUSY:
        return EndpointFault.REFUSED
    if status in _NOT_SERVED:
        return EndpointFault.UNAVAILABLE
    return EndpointFault.BROKEN if status == _TIMED_OUT or status >= _SERVER_ERROR else None


def _error_code(document: Mapping[str, Any] | None) -> str:
    """Return the code of an error in OpenAI's format; empty if it has none."""
    error = (document or {}).get("error")
    return str(error.get("code") or "") if isinstance(error, dict) else ""


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
