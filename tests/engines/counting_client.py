"""Streams of the counting model, and what a client saw of each."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from inference_blueprints.measure.tokenizer import one_token_words
from tests.engines.counting_kind import prompt_to, words_after

#: The schema of an answer with a string that has no end.
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
#: No call of a client may take longer, whatever dies. It bounds a hang, not a speed.
CALL_SECONDS = 240.0
# Streams begin this many words apart, so that words of one in another would be seen.
_APART = 53
# Each call has prompts of its own: a KV-aware router would send a repeated prompt to the worker that has it.
_SHIFTS = itertools.count(step=7)


@dataclass(slots=True)
class Stream:
    """One stream and what arrived of it."""

    start: int
    """Index of the last word of its prompt."""
    words: int
    """Number of words asked for."""
    prompt_words: int
    """Length of its prompt."""
    status: int = 0
    text: str = ""
    finish: str | None = None
    done: int = 0
    error: str = ""
    broken: bool = False
    ended: bool = False
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def got(self) -> list[str]:
        """Words that arrived."""
        return self.text.split()

    @property
    def is_whole(self) -> bool:
        """Whether every word arrived once, in order, with one end and no error."""
        whole = self.got == words_after(self.start, self.words)
        return whole and (self.finish, self.done, self.error, self.broken) == ("length", 1, "", False)

    @property
    def is_beginning(self) -> bool:
        """Whether the words that arrived are the first ones, each once."""
        return self.got == words_after(self.start, len(self.got))


async def read(
    session: aiohttp.ClientSession, url: str, stream: Stream, *, chat: bool = False, **options: Any
) -> None:
    """Send the request of a stream to an endpoint and read its answer to the end.

    url: Base URL with ``/v1``.
    chat: Whether the prompt is a message.
    options: Further fields of the request.
    """
    text = prompt_to(stream.start, stream.prompt_words)
    path = "chat/completions" if chat else "completions"
    body = {
        "model": "qwen3-8b",
        **({"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}),
        "max_tokens": stream.words,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **options,
    }
    try:
        async with session.post(f"{url}/{path}", json=body) as answer:
            stream.status = answer.status
            if answer.status != 200:
                stream.error = await answer.text()
                return
            async for raw in answer.content:
                _take(stream, raw.decode().strip())
    except aiohttp.ClientError as error:
        stream.broken, stream.error = True, str(error)
    finally:
        stream.ended = True


def _take(stream: Stream, line: str) -> None:
    if line == "data: [DONE]":
        stream.done += 1
    elif line.startswith("data: "):
        event = json.loads(line.removeprefix("data: "))
        stream.error += json.dumps(event["error"]) if "error" in event else ""
        stream.usage = event.get("usage") or stream.usage
        for choice in event.get("choices", []):
            stream.text += choice.get("text") or words_of(choice.get("delta", {}))
            stream.finish = choice.get("finish_reason") or stream.finish
    elif line:
        stream.error += line


def words_of(message: Mapping[str, Any]) -> str:
    """Return the reasoning and the text of a message, or of a part of it.

    Dynamo names reasoning ``reasoning_content``, and vLLM 0.31.0 ``reasoning``.
    """
    names = ("reasoning_content", "reasoning", "content")
    return "".join(message.get(name) or "" for name in names)


async def _all(
    urls: Sequence[str],
    streams: Sequence[Stream],
    has_begun: Callable[[], bool],
    disturb: Callable[[], Awaitable[None]],
    options: dict[str, Any],
) -> None:
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
        asyncio.TaskGroup() as tasks,
    ):
        for number, stream in enumerate(streams):
            tasks.create_task(read(session, urls[number % len(urls)], stream, **options))
        async with asyncio.timeout(CALL_SECONDS):
            while not has_begun():
                await asyncio.sleep(0.05)
        await disturb()


def stream_while(
    urls: Sequence[str],
    disturb: Callable[[], object],
    *,
    streams: int = 12,
    words: int = 600,
    prompt_words: int = 40,
    begun: int = 30,
    begun_streams: int | None = None,
    **options: Any,
) -> list[Stream]:
    """Send streams, disturb the platform once they have begun, and return them when all have ended.

    urls: Base URLs with ``/v1``; streams are spread over them.
    disturb: Called in another thread while the streams run.
    begun: Number of words of a stream that arrive before that, if it does not end first.
    begun_streams: Number of streams for which that is so. By default, all.
    options: Further arguments of `read`.
    """
    shift = next(_SHIFTS)
    sent = [Stream(number * _APART + shift, words, prompt_words) for number in range(streams)]
    awaited = streams if begun_streams is None else begun_streams

    def has_begun() -> bool:
        return sum(len(each.got) >= begun or each.ended for each in sent) >= awaited

    async def act() -> None:
        await asyncio.to_thread(disturb)

    asyncio.run(_all(urls, sent, has_begun, act, dict(options)))
    return sent


def check_answers_with_a_schema(streams: Sequence[Stream]) -> None:
    """Check that some answers end with an error and that none begins again.

    The schema is `SCHEMA`, so that a whole answer is a string of words in their order, up to its length. One
    that ends with an error is the beginning of it.
    """
    broken = [each for each in streams if each.error]
    assert broken, "the worker that ended had no streams"
    assert len(broken) < len(streams), "the other worker answered none"
    for each in broken:
        assert json.loads(each.error)["code"] == 503, each
        assert each.finish is None, each
    whole = {each.text for each in streams if not each.error}
    assert len(whole) == 1, whole
    [text] = whole
    assert all(text.startswith(each.text) for each in broken), streams
    words = text.removeprefix('{"a":"').split()
    assert words == words_after(one_token_words().index(words[0]) - 1, len(words)), text
    assert {each.finish for each in streams if not each.error} == {"length"}
