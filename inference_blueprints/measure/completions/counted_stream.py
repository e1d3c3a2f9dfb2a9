"""A stream whose tokens a client counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inference_blueprints.measure.completions.completion_client import CompletionClient, RequestOutcome

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
