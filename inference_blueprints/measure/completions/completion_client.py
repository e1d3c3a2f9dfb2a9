"""One streaming request to an OpenAI endpoint, timed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from inference_contracts.units import MILLISECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts from ``usage`` in the response."""

    prompt_tokens: int
    """Tokens of the prompt including the chat template."""
    completion_tokens: int
    """Tokens of the answer."""
    cached_tokens: int | None
    """Prompt tokens found in the KV cache. None if the endpoint does not report them."""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The outcome of one request. Times are seconds on the client's clock."""

    due_seconds: float
    sent_seconds: float
    """`due_seconds`, `sent_seconds`: Planned and actual send time."""
    first_token_seconds: float | None
    last_token_seconds: float | None
    """`first_token_seconds`, `last_token_seconds`: When the first and the last chunk of the answer arrived.
    None if none arrived."""
    ended_seconds: float
    """When the request ended."""
    usage: TokenUsage | None
    """Token counts. None if the endpoint sent none."""
    failure: str | None = None
    """Reason of the failure. The same cause has the same text. None for a complete answer."""
    failure_detail: str = ""
    """Message of the endpoint or the operating system."""
    images: int = 0
    """Images in the answer."""

    @property
    def time_to_first_token_ms(self) -> float | None:
        """Time from sending to the first chunk of the answer, in milliseconds."""
        if self.first_token_seconds is None:
            return None
        return (self.first_token_seconds - self.sent_seconds) * MILLISECONDS_PER_SECOND

    @property
    def end_to_end_ms(self) -> float | None:
        """Time from sending to the last chunk of the answer, in milliseconds."""
        if self.last_token_seconds is None:
            return None
        return (self.last_token_seconds - self.sent_seconds) * MILLISECONDS_PER_SECOND

    @property
    def time_per_output_token_ms(self) -> float | None:
        """Time from the first to the last token, divided by the tokens after the first, in milliseconds."""
        if self.first_token_seconds is None or self.last_token_seconds is None or self.usage is None:
            return None
        if self.usage.completion_tokens < 2:  # noqa: PLR2004 - there is no token after the first
            return None
        span = self.last_token_seconds - self.first_token_seconds
        return span / (self.usage.completion_tokens - 1) * MILLISECONDS_PER_SECOND


Clock = Callable[[], float]
#: Reasons that concern the whole endpoint, not one request.
REFUSED = "connection refused"
UNKNOWN_HOST = "unknown host name"
UNTRUSTED = "no TLS connection"
UNCONNECTED = "no connection"
BROKEN = "connection broken"
TIMED_OUT = "no end within the time limit"
UNREACHABLE = frozenset({REFUSED, UNKNOWN_HOST, UNTRUSTED, UNCONNECTED, BROKEN, TIMED_OUT})
MALFORMED = "malformed stream"
CUT_SHORT = "stream ended without [DONE]"
NO_TOKENS = "answer without tokens"
REPORTED = "error within the stream"
HTTP_OK = 200
_DETAIL_CHARACTERS = 300


def connection_failure(error: aiohttp.ClientConnectorError) -> str:
    """Return the reason that there is no connection."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UNKNOWN_HOST
    if isinstance(error, aiohttp.ClientSSLError):
        return UNTRUSTED
    return REFUSED if isinstance(error.os_error, ConnectionRefusedError) else UNCONNECTED


class RequestFailedError(Exception):
    """A request without a complete answer."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = " ".join(detail.split())[:_DETAIL_CHARACTERS]


@dataclass(slots=True)
class Stream:
    """The received part of an answer."""

    first: float | None = None
    last: float | None = None
    usage: TokenUsage | None = None
    on_first_token: Callable[[], None] | None = None
    on_event: Callable[[dict[str, Any]], None] | None = None
    images: int = 0


class CompletionClient:
    """Sends chat completions and times the streams.

    session: Session to use. The caller closes it.
    timeout_seconds: Maximum time from sending to the end of the stream.
    clock: Returns monotonic seconds for the times of the outcome.
    """

    #: Path of the requests.
    path = "/v1/chat/completions"

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        model: str,
        *,
        timeout_seconds: float,
        clock: Clock,
    ) -> None:
        self._session = session
        self._url = f"{base_url}{self.path}"
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._clock = clock

    async def complete(
        self,
        prompt: str,
        output_tokens: int,
        due_seconds: float,
        *,
        on_first_token: Callable[[], None] | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> RequestOutcome:
        """Send one request and read its stream to the end.

        output_tokens: Exact length of the answer. The request uses ``min_tokens`` and ``ignore_eos``, which
            vLLM and Dynamo add to the API. Without them, the answer lengths of a trace cannot be replayed.
        due_seconds: Planned send time, on the clock.
        on_first_token: Called when the first chunk of the answer arrives.
        on_event: Called with every event of the stream.
        Returns: Also for a failed request. This method raises no exception except cancellation.
        """
        stream = Stream(on_first_token=on_first_token, on_event=on_event)
        failure: tuple[str | None, str] = (None, "")
        sent = self._clock()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._read(self.body(prompt, output_tokens), stream)
        except RequestFailedError as error:
            failure = (error.reason, error.detail)
        except TimeoutError:
            failure = (TIMED_OUT, f"{self._timeout_seconds:g} s")
        except aiohttp.ClientConnectorError as error:
            failure = (connection_failure(error), str(error.os_error))
        except (aiohttp.ClientError, ConnectionError) as error:
            failure = (BROKEN, str(error))
        return RequestOutcome(
            due_seconds=due_seconds,
            sent_seconds=sent,
            first_token_seconds=stream.first,
            last_token_seconds=stream.last,
            ended_seconds=self._clock(),
            usage=stream.usage,
            failure=failure[0],
            failure_detail=failure[1],
            images=stream.images,
        )

    def body(self, prompt: str, output_tokens: int) -> dict[str, Any]:
        """Return the body of a request."""
        return {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": output_tokens,
            "min_tokens": output_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    async def _read(self, body: dict[str, Any], stream: Stream) -> None:
        """Send the request and record its stream."""
        async with self._session.post(self._url, json=body) as response:
            if response.status != HTTP_OK:
                raise RequestFailedError(f"HTTP {response.status}", await response.text(errors="replace"))
            async for event in _events(response.content):
                self._note(event, stream)
        if stream.first is None:
            raise RequestFailedError(NO_TOKENS)

    def _note(self, event: dict[str, Any], stream: Stream) -> None:
        """Record the text and token counts of one event."""
        if "error" in event:
            raise RequestFailedError(REPORTED, json.dumps(event["error"]))
        try:
            text = any(_text(choice["delta"]) for choice in event.get("choices", ()))
            usage = event.get("usage")
            if usage:
                details = usage.get("prompt_tokens_details") or {}
                stream.usage = TokenUsage(
                    usage["prompt_tokens"], usage["completion_tokens"], details.get("cached_tokens")
                )
        except (KeyError, TypeError, AttributeError) as error:
            raise RequestFailedError(MALFORMED, f"{error!r} in {json.dumps(event)}") from error
        if stream.on_event:
            stream.on_event(event)
        if text:
            stream.last = self._clock()
            if stream.first is None:
                stream.first = stream.last
                if stream.on_first_token:
                    stream.on_first_token()


def _text(delta: dict[str, Any]) -> str:
    """Return the text of the answer or of the reasoning in a chunk."""
    return delta.get("content") or delta.get("reasoning_content") or ""


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a server-sent stream up to [DONE]."""
    error_follows = False
    while line := await _line(content):
        field, _, value = line.decode(errors="replace").strip().partition(":")
        value = value.strip()
        if field == "event":
            error_follows = value == "error"
        elif error_follows and field in {"data", ""}:  # Dynamo puts the message of an error into a comment
            raise RequestFailedError(REPORTED, value)
        elif field == "data":
            if value == "[DONE]":
                return
            yield _event(value)
    raise RequestFailedError(CUT_SHORT)


async def _line(content: aiohttp.StreamReader) -> bytes:
    """Read a line. It is empty at the end of the stream."""
    try:
        return await content.readline()
    except ValueError as error:  # longer than the reader's limit
        raise RequestFailedError(MALFORMED, str(error)) from error


def _event(value: str) -> dict[str, Any]:
    """Read one event's JSON object."""
    try:
        event = json.loads(value)
    except json.JSONDecodeError as error:
        raise RequestFailedError(MALFORMED, f"{error} in {value}") from error
    if not isinstance(event, dict):
        raise RequestFailedError(MALFORMED, f"not an object: {value}")
    return event


# A stream whose tokens a client counts.

_LENGTH = "length"
#: Reason of a failure.
WRONG_COUNT = "wrong number of tokens"


class CountedStream:
    """What arrived of one stream of known length.

    Every token of the tokenizer of `model_directory` is one word, so words are tokens. A token that is lost
    or sent twice, for example when a stream moves to another worker, changes their number.

    asked: Number of tokens that the request asked for.
    """

    def __init__(self, asked: int) -> None:
        self._asked = asked
        self._text: list[str] = []
        self._reasons: list[str] = []

    @property
    def tokens(self) -> int:
        """Number of tokens that arrived."""
        return len("".join(self._text).split())

    def take(self, event: dict[str, Any]) -> None:
        """Add an event of the stream."""
        for choice in event.get("choices", ()):
            delta = choice["delta"]
            self._text.append(delta.get("content") or delta.get("reasoning_content") or "")
            if reason := choice.get("finish_reason"):
                self._reasons.append(reason)

    def fault(self, outcome: RequestOutcome) -> str | None:
        """Return what is wrong with the stream. None if every token arrived once."""
        if outcome.failure is not None:
            return f"{outcome.failure} {outcome.failure_detail}".strip()
        if self.tokens != self._asked:
            return f"{self.tokens} of {self._asked} tokens arrived"
        if outcome.usage is None or outcome.usage.completion_tokens != self._asked:
            return f"usage is {outcome.usage}, {self._asked} tokens arrived"
        if self._reasons != [_LENGTH]:
            return f"finish reasons are {self._reasons}"
        return None


class CountingClient(CompletionClient):
    """Counts the tokens of every stream. One with a token too few or too many has failed."""

    async def complete(
        self,
        prompt: str,
        output_tokens: int,
        due_seconds: float,
        *,
        on_first_token: Callable[[], None] | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> RequestOutcome:
        counted = CountedStream(output_tokens)

        def take(event: dict[str, Any]) -> None:
            counted.take(event)
            if on_event:
                on_event(event)

        outcome = await super().complete(
            prompt, output_tokens, due_seconds, on_first_token=on_first_token, on_event=take
        )
        if outcome.failure is None and (fault := counted.fault(outcome)):
            return replace(outcome, failure=WRONG_COUNT, failure_detail=fault)
        return outcome
