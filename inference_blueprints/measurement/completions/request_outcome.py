"""What became of one request."""

from __future__ import annotations

from dataclasses import dataclass

_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts as the endpoint states them in ``usage``.

    Parameters
    ----------
    prompt_tokens, completion_tokens
        Tokens of the prompt, chat template included, and of the answer.
    cached_tokens
        Prompt tokens found in the KV cache; None where the endpoint does not say.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """One request as it went. Times are seconds on the client's clock.

    Parameters
    ----------
    due_seconds, sent_seconds
        When it was to be sent, and when it was.
    first_token_seconds, last_token_seconds
        When the first and the last piece of the answer came; None where none did.
    ended_seconds
        When nothing more was to come.
    usage
        Token counts; None where the endpoint did not send any.
    failure
        Why it failed, in words that are the same for the same cause; None for a complete answer.
    failure_detail
        What the endpoint or the operating system said about it.
    """

    due_seconds: float
    sent_seconds: float
    first_token_seconds: float | None
    last_token_seconds: float | None
    ended_seconds: float
    usage: TokenUsage | None
    failure: str | None = None
    failure_detail: str = ""

    @property
    def time_to_first_token_ms(self) -> float | None:
        """From sending to the first piece of the answer, in milliseconds."""
        if self.first_token_seconds is None:
            return None
        return (self.first_token_seconds - self.sent_seconds) * _MILLISECONDS

    @property
    def end_to_end_ms(self) -> float | None:
        """From sending to the last piece of the answer, in milliseconds."""
        if self.last_token_seconds is None:
            return None
        return (self.last_token_seconds - self.sent_seconds) * _MILLISECONDS

    @property
    def time_per_output_token_ms(self) -> float | None:
        """From the first token to the last over the tokens after the first, in milliseconds."""
        if self.first_token_seconds is None or self.last_token_seconds is None or self.usage is None:
            return None
        if self.usage.completion_tokens < 2:  # noqa: PLR2004 - there is no token after the first
            return None
        span = self.last_token_seconds - self.first_token_seconds
        return span / (self.usage.completion_tokens - 1) * _MILLISECONDS
