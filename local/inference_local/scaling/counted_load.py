"""Clients that stream without a break, and count every token."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp

from inference_blueprints.measure.completions.completion_client import CompletionClient, CountedStream
from inference_blueprints.measure.tokenizer import random_text

_PERIOD_SECONDS = 0.05


@dataclass(slots=True)
class StreamCount:
    """What the clients counted."""

    streams: int = 0
    """Streams that have ended."""
    tokens: int = 0
    """Their tokens."""
    running: int = 0
    begun: int = 0
    """`running`, `begun`: Streams under way, and those of them that have their first token."""
    faults: list[str] = field(default_factory=list)
    """What was wrong with each stream that was cut, and with which."""


@dataclass(frozen=True, slots=True)
class StreamLengths:
    """Lengths of the requests, in tokens, each chosen at random."""

    prompts: tuple[int, int]
    answers: tuple[int, int]
    """`prompts`, `answers`: Shortest and longest."""


class CountedLoad:
    """Clients of one model, each with one stream after the other. Use it as an asynchronous context manager.

    At the end, every stream that runs ends by itself.

    frontends: Their URLs, without ``/v1``. Each request goes to one at random.
    clients: How many there are.
    lengths: Lengths of the requests.
    timeout_seconds: Longest time of one stream.
    seed: Chooses lengths, frontends and words.
    """

    def __init__(
        self,
        model: str,
        frontends: Sequence[str],
        clients: int,
        lengths: StreamLengths,
        *,
        timeout_seconds: float,
        seed: int,
    ) -> None:
        self._model = model
        self._frontends = frontends
        self._clients = clients
        self._lengths = lengths
        self._timeout_seconds = timeout_seconds
        self._random = random.Random(seed)  # noqa: S311 - no secret is made
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._under_way: set[CountedStream] = set()
        self.count = StreamCount()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._tasks = [asyncio.create_task(self._client()) for _ in range(self._clients)]
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped = True
        try:
            await asyncio.gather(*self._tasks)
        finally:
            await self._session.close()

    def stop(self) -> None:
        """Send no more requests. Streams under way go on."""
        self._stopped = True

    async def streams_end(self) -> None:
        """Wait until each stream that is under way now has ended. Others may begin meanwhile."""
        wanted = set(self._under_way)
        while wanted & self._under_way:
            await asyncio.sleep(_PERIOD_SECONDS)

    async def _client(self) -> None:
        while not self._stopped:
            await self.stream()

    def _begin(self) -> None:
        self.count.begun += 1

    async def stream(self) -> None:
        """Send one request, read its stream to the end, and count it."""
        url = self._random.choice(self._frontends)
        prompt = random_text(self._random.randint(*self._lengths.prompts), seed=self._random.getrandbits(32))
        asked = self._random.randint(*self._lengths.answers)
        client = CompletionClient(
            self._session, url, self._model, timeout_seconds=self._timeout_seconds, clock=time.perf_counter
        )
        counted = CountedStream(asked)
        self.count.running += 1
        self._under_way.add(counted)
        outcome = await client.complete(
            prompt, asked, time.perf_counter(), on_first_token=self._begin, on_event=counted.take
        )
        self.count.running -= 1
        self._under_way.remove(counted)
        self.count.begun -= outcome.first_token_seconds is not None
        self.count.streams += 1
        self.count.tokens += counted.tokens
        if fault := counted.fault(outcome):
            self.count.faults.append(fault)
            await asyncio.sleep(1.0)  # a platform that refuses everything is not asked as fast as possible
