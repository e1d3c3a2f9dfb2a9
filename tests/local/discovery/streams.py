"""Clients that stream without a pause, and what became of each stream."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field

import aiohttp

from tests.local.discovery.platform import FRONTENDS, MODEL

_CLIENTS = 4
_TOKENS = 200
_TIMEOUT = aiohttp.ClientTimeout(total=120)


@dataclass
class Streams:
    """Clients of both frontends.

    Attributes
    ----------
    whole
        Number of complete streams.
    errors
        What ended the others.
    """

    whole: int = 0
    errors: list[str] = field(default_factory=list)
    _ending: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(_CLIENTS)]

    async def end(self) -> None:
        """Wait until every client has finished its stream."""
        self._ending = True
        await asyncio.gather(*self._tasks)

    async def _client(self, number: int) -> None:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            for count in itertools.count(number):
                if self._ending:
                    return
                try:
                    await self._stream(session, FRONTENDS[count % len(FRONTENDS)], count)
                except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                    self.errors.append(f"{type(error).__name__}: {error}"[:200])
                    await asyncio.sleep(0.2)
                else:
                    self.whole += 1

    async def _stream(self, session: aiohttp.ClientSession, host: str, count: int) -> None:
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"hello {count}"}],
            "max_tokens": _TOKENS,
            "stream": True,
            "ignore_eos": True,
        }
        tokens, finish = 0, None
        async with session.post(f"http://{host}:8000/v1/chat/completions", json=body) as answer:
            if answer.status != 200:
                raise ValueError(f"{answer.status} {await answer.text()}")
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    chunk = json.loads(line[6:])
                    if "choices" not in chunk:
                        raise ValueError(f"in the stream: {chunk}")
                    for choice in chunk["choices"]:
                        tokens += bool(choice["delta"].get("content"))
                        finish = choice.get("finish_reason") or finish
        if (tokens, finish) != (_TOKENS, "length"):
            raise ValueError(f"the stream ended after {tokens} tokens: {finish}")
