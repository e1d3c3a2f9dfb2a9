"""Clients that stream without a pause, and what became of each stream."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp

CLIENTS = 4
_LOOK_SECONDS = 0.05


@dataclass
class Streams:
    """Clients that ask addresses in turn, and count every token of their answers."""

    urls: Sequence[str]
    """Addresses, without ``/v1``."""
    model: str
    """The model that they ask for."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every request."""
    tokens: int = 200
    """Length of each answer."""
    timeout_seconds: float = 120
    """Longest time of an answer."""
    clients: int = CLIENTS
    """How many stream at the same time."""
    whole: int = 0
    """Number of complete streams."""
    errors: list[str] = field(default_factory=list)
    """What ended the others."""
    _ending: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _begun: list[int] = field(default_factory=list)
    """Per client: its number of streams so far, and which of them brought the last token."""
    _heard: list[int] = field(default_factory=list)

    def begin(self) -> None:
        self._begun, self._heard = [0] * self.clients, [0] * self.clients
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(self.clients)]

    async def fresh(self) -> None:
        """Wait until every client has a token of a stream that began after this call: no earlier one runs."""
        before = tuple(self._begun)
        async with asyncio.timeout(self.timeout_seconds):
            while any(heard <= begun for heard, begun in zip(self._heard, before, strict=True)):
                await asyncio.sleep(_LOOK_SECONDS)

    async def end(self) -> None:
        """Wait until every client has finished its stream."""
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def _client(self, number: int) -> None:
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self.timeout_seconds)
        ) as session:
            for count in itertools.count(number):
                if self._ending:
                    return
                self._begun[number] += 1
                try:
                    await self._stream(session, self.urls[count % len(self.urls)], number, count)
                except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                    self.errors.append(f"{type(error).__name__}: {error}"[:200])
                    await asyncio.sleep(0.2)
                else:
                    self.whole += 1

    async def _stream(self, session: aiohttp.ClientSession, url: str, number: int, count: int) -> None:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": f"hello {count}"}],
            "max_tokens": self.tokens,
            "stream": True,
            "ignore_eos": True,
        }
        tokens, finish = 0, None
        async with session.post(f"{url}/v1/chat/completions", json=body, headers=self.headers) as answer:
            if answer.status != 200:
                raise ValueError(f"{answer.status} {await answer.text()}")
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    chunk = json.loads(line[6:])
                    if "choices" not in chunk:
                        raise ValueError(f"in the stream: {chunk}")
                    self._heard[number] = self._begun[number]
                    for choice in chunk["choices"]:
                        tokens += bool(choice["delta"].get("content"))
                        finish = choice.get("finish_reason") or finish
        if (tokens, finish) != (self.tokens, "length"):
            raise ValueError(f"the stream ended after {tokens} tokens: {finish}")
