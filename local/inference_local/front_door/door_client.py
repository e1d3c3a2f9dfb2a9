"""Calls the front door with OpenAI's own client, and counts what came back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk

from inference_contracts.request_headers import SESSION_HEADER

#: What a caller got: a whole answer, a refusal, the part until it hung up, the part until the connection
#: broke, or anything else.
AnswerKind = Literal["whole", "refused", "cut", "broken", "failed"]
#: What a team is told whose budget is used up, and what callers are told for whom there is no room
#: (https://platform.openai.com/docs/guides/error-codes).
QUOTA = "insufficient_quota"
_TOO_MANY_REQUESTS = 429
_TIMEOUT_SECONDS = 120.0
#: OpenAI's own default. A refusal that names a longer time than two minutes is not repeated.
_RETRIES = 2


@dataclass(frozen=True, slots=True)
class DoorAnswer:
    """What a caller got for a request."""

    kind: AnswerKind
    team: str
    model: str
    """Name of the model in the request."""
    began: float
    ended: float
    """`began`, `ended`: Seconds of `time.monotonic`."""
    reason: str = ""
    """Code of a refusal, or why there is no whole answer."""
    identifier: str = ""
    """The header ``x-request-id``. Empty without an answer."""
    input_tokens: int = 0
    output_tokens: int = 0
    """`input_tokens`, `output_tokens`: Usage in the last part that arrived."""
    retry_after: float | None = None
    """Seconds that a refusal names. None if it names none."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class DoorQuestion:
    """A request."""

    model: str
    prompt: str
    tokens: int
    """Tokens of the answer."""
    headers: Mapping[str, str] | None = None
    """Further headers."""

    def in_session(self, name: str) -> DoorQuestion:
        """Return the same question as a part of a conversation."""
        return DoorQuestion(
            self.model, self.prompt, self.tokens, {**(self.headers or {}), SESSION_HEADER: name}
        )


class DoorClient:
    """A team's client. Use it as an asynchronous context manager.

    team: Name of the team. Empty for calls of a model without the door.
    base_url: Base URL of the API, ending in ``/v1``.
    key: Its API key.
    retries: How often the client repeats a request whose connection broke or that found no room.
    """

    def __init__(self, team: str, base_url: str, key: str, *, retries: int = _RETRIES) -> None:
        self.team = team
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=key, max_retries=retries, timeout=_TIMEOUT_SECONDS
        )

    async def __aenter__(self) -> DoorClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def ask(self, question: DoorQuestion) -> DoorAnswer:
        """Ask for a whole answer."""
        call = _Call(self.team, question)
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=question.model,
                messages=[{"role": "user", "content": question.prompt}],
                max_tokens=question.tokens,
                extra_headers=question.headers,
            )
            call.identifier = raw.headers.get("x-request-id", "")
            call.take_usage(raw.parse().usage)
        except openai.OpenAIError as error:
            return call.without_answer(error)
        return call.ended("whole") if call.output_tokens else call.ended("failed", "answer without usage")

    async def stream(
        self,
        question: DoorQuestion,
        *,
        hangs_up: Callable[[int], bool] | None = None,
        begun: Callable[[], None] | None = None,
    ) -> DoorAnswer:
        """Ask for a stream with the usage in each chunk.

        hangs_up: Called after each chunk with the number of chunks with text, and returns whether the caller
            hangs up. None to read it to its end.
        begun: Called at the first chunk with text.
        """
        call = _Call(self.team, question)
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=question.model,
                messages=[{"role": "user", "content": question.prompt}],
                max_tokens=question.tokens,
                stream=True,
                extra_body={"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
                extra_headers=question.headers,
            )
            call.identifier = raw.headers.get("x-request-id", "")
            async with raw.parse() as stream:
                async for chunk in stream:
                    call.take_chunk(chunk)
                    if begun is not None and call.texts == 1:
                        begun()
                    if hangs_up is not None and hangs_up(call.texts):
                        return call.ended("cut")
        except openai.OpenAIError as error:
            return call.ended("broken", _words(error)) if call.texts else call.without_answer(error)
        is_whole = call.has_finished and call.output_tokens > 0
        return call.ended("whole") if is_whole else call.ended("failed", "stream without an end or usage")


@dataclass(slots=True)
class _Call:
    """A request under way."""

    team: str
    question: DoorQuestion
    began: float = field(default_factory=time.monotonic)
    identifier: str = ""
    texts: int = 0
    """Chunks with text."""
    input_tokens: int = 0
    output_tokens: int = 0
    has_finished: bool = False

    def take_usage(self, usage: CompletionUsage | None) -> None:
        if usage is not None:
            self.input_tokens, self.output_tokens = usage.prompt_tokens, usage.completion_tokens

    def take_chunk(self, chunk: ChatCompletionChunk) -> None:
        self.take_usage(chunk.usage)
        for choice in chunk.choices:
            self.texts += bool(choice.delta.content)
            self.has_finished = self.has_finished or choice.finish_reason is not None

    def ended(self, kind: AnswerKind, reason: str = "", retry_after: float | None = None) -> DoorAnswer:
        return DoorAnswer(
            kind,
            self.team,
            self.question.model,
            self.began,
            time.monotonic(),
            reason,
            self.identifier,
            self.input_tokens,
            self.output_tokens,
            retry_after,
        )

    def without_answer(self, error: openai.OpenAIError) -> DoorAnswer:
        if not isinstance(error, openai.APIStatusError):
            is_broken = isinstance(error, openai.APIConnectionError)
            return self.ended("broken" if is_broken else "failed", _words(error))
        self.identifier = error.response.headers.get("x-request-id", "")
        after = error.response.headers.get("retry-after")
        if error.status_code == _TOO_MANY_REQUESTS and error.code is not None:
            return self.ended("refused", error.code, float(after) if after else None)
        return self.ended("failed", f"status {error.status_code} {error.code or ''}".strip())


def _words(error: openai.OpenAIError) -> str:
    if isinstance(error, openai.APITimeoutError):
        return f"no end within {_TIMEOUT_SECONDS:.0f} s"
    return "connection broken" if isinstance(error, openai.APIConnectionError) else str(error)[:200]
