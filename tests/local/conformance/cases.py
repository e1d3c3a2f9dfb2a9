"""What a platform must do, whatever it runs on. Every token of every stream is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tests.local.conformance.platforms import WORKERS, ConformingPlatform, StreamedPlatform
from tests.local.counted_streams import Streams

_QUESTION: Any = [{"role": "user", "content": "Hello"}]


def models_are_listed(platform: ConformingPlatform) -> None:
    [model] = platform.client.models.list().data
    assert model.id == platform.file.model
    assert (model.model_extra or {})["context_window"] == platform.file.context


def a_chat_counts_its_tokens(platform: ConformingPlatform) -> None:
    answer = platform.client.chat.completions.create(
        model=platform.file.model, messages=_QUESTION, max_tokens=12
    )
    assert answer.usage is not None
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (12, "length")
    assert len((answer.choices[0].message.content or "").split()) == 12


def a_completion_counts_its_tokens(platform: ConformingPlatform) -> None:
    answer = platform.client.completions.create(model=platform.file.model, prompt="Hello", max_tokens=9)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 9


def a_stream_brings_every_token_and_the_usage(platform: ConformingPlatform) -> None:
    chunks = list(
        platform.client.chat.completions.create(
            model=platform.file.model,
            messages=_QUESTION,
            max_tokens=7,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert len(said.split()) == 7
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 7


def an_unknown_model_is_not_found(platform: ConformingPlatform) -> None:
    with pytest.raises(openai.NotFoundError):
        platform.client.chat.completions.create(model="absent", messages=_QUESTION, max_tokens=1)


def a_question_above_the_context_is_refused(platform: ConformingPlatform) -> None:
    with pytest.raises(openai.BadRequestError):
        platform.client.completions.create(
            model=platform.file.model, prompt="word " * (platform.file.context + 1), max_tokens=1
        )


def a_wrong_parameter_is_refused(platform: ConformingPlatform) -> None:
    with pytest.raises(openai.BadRequestError):
        platform.client.chat.completions.create(
            model=platform.file.model, messages=_QUESTION, max_tokens=1, temperature=-1
        )


def streams_survive_a_killed_worker(platform: ConformingPlatform) -> None:
    def disturb() -> None:
        platform.kill_worker()
        platform.replaced()

    assert streams_while(platform, disturb) > 0


def streams_survive_a_scale_in(platform: ConformingPlatform) -> None:
    assert streams_while(platform, lambda: platform.scale(WORKERS - 1)) > 0
    platform.scale(WORKERS)


def streams_survive_a_rolling_deployment(platform: ConformingPlatform) -> None:
    assert streams_while(platform, platform.roll_out) > 0


def streams_while(platform: StreamedPlatform, disturb: Callable[[], None]) -> int:
    """Stream while a platform is disturbed, and return the number of streams: all are whole."""
    streams = disturbed_streams(platform, disturb)
    assert streams.errors == [], streams.errors
    return streams.whole


def disturbed_streams(
    platform: StreamedPlatform, disturb: Callable[[], None], timeout_seconds: float = 120
) -> Streams:
    """Stream while a platform is disturbed, and return what became of the streams."""

    async def run() -> Streams:
        streams = Streams(
            [platform.url], platform.file.model, platform.headers, timeout_seconds=timeout_seconds
        )
        streams.begin()
        await streams.fresh()
        await asyncio.to_thread(disturb)
        await streams.end()
        return streams

    return asyncio.run(run())


#: A killed worker comes last: it is known until its lease in the discovery store ends.
CASES: tuple[Callable[[ConformingPlatform], None], ...] = (
    models_are_listed,
    a_chat_counts_its_tokens,
    a_completion_counts_its_tokens,
    a_stream_brings_every_token_and_the_usage,
    an_unknown_model_is_not_found,
    a_question_above_the_context_is_refused,
    a_wrong_parameter_is_refused,
    streams_survive_a_scale_in,
    streams_survive_a_rolling_deployment,
    streams_survive_a_killed_worker,
)
