"""The outcome of one request."""

from __future__ import annotations

from dataclasses import dataclass

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
