"""The outcome of one request."""

from __future__ import annotations

from dataclasses import dataclass

from inference_contracts.units import MILLISECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts from ``usage`` in the response.

    Parameters
    ----------
    prompt_tokens, completion_tokens
        Tokens of the prompt including the chat template, and of the answer.
    cached_tokens
        Prompt tokens found in the KV cache. None if the endpoint does not report them.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The outcome of one request. Times are seconds on the client's clock.

    Parameters
    ----------
    due_seconds, sent_seconds
        Planned and actual send time.
    first_token_seconds, last_token_seconds
        When the first and the last chunk of the answer arrived. None if none arrived.
    ended_seconds
        When the request ended.
    usage
        Token counts. None if the endpoint sent none.
    failure
        Reason of the failure. The same cause has the same text. None for a complete answer.
    failure_detail
        Message of the endpoint or the operating system.
    images
        Images in the answer.
    """

    due_seconds: float
    sent_seconds: float
    first_token_seconds: float | None
    last_token_seconds: float | None
    ended_seconds: float
    usage: TokenUsage | None
    failure: str | None = None
    failure_detail: str = ""
    images: int = 0

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
