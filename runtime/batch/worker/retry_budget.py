"""Budgets of the worker: retries that fail, and bytes that are held at the same time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final


class MemoryBudget:
    """A limit on held bytes.

    max_bytes: The limit. A larger item is admitted if nothing else is held.
    """

    def __init__(self, max_bytes: int) -> None:
        self._maximum = max_bytes
        self._held = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> None:
        """Wait for memory, in order of arrival."""
        if not self._waiting and self._has_room(size):
            self._held += size
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give_back(size)
            raise

    def give_back(self, size: int) -> None:
        """Release memory.

        size: Bytes that were taken.
        """
        self._held -= size
        while self._waiting and self._has_room(self._waiting[0][0]):
            size, waiter = self._waiting.popleft()
            if not waiter.done():
                self._held += size
                waiter.set_result(None)

    def _has_room(self, size: int) -> bool:
        return not self._held or self._held + size <= self._maximum


_MAX_TOKENS: Final = 100.0
_TOKENS_A_SECOND: Final = 10.0
_MIN_SECONDS: Final = 0.001


class RetryBudget:
    """The tokens, and the tasks that wait for one.

    ratio: Tokens added per success.
    """

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._tokens = _MAX_TOKENS
        self._filled_at: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def succeeded(self, *, again: bool) -> None:
        """Add tokens for a successful request.

        again: Whether the request was a retry, which returns its token.
        """
        self._tokens = min(_MAX_TOKENS, self._tokens + self._ratio + again)
        if self._waiting:
            self._grant()

    async def take(self) -> None:
        """Wait for a token for a retry, in order of arrival."""
        self._fill()
        if self._tokens >= 1 and not self._waiting:
            self._tokens -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._grant()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._tokens += 1
            raise

    def _fill(self) -> None:
        """Add the tokens due since the last call."""
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(_MAX_TOKENS, self._tokens + (now - self._filled_at) * _TOKENS_A_SECOND)
        self._filled_at = now

    def _grant(self) -> None:
        """Serve waiting tasks, and schedule the next call for the time of the next token."""
        self._fill()
        while self._waiting and self._tokens >= 1:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._tokens -= 1
                waiter.set_result(None)
        if self._waiting and self._timer is None:
            # Not shorter than the clock's resolution. Otherwise the call would repeat many times at the same
            # time.
            seconds = max(_MIN_SECONDS, (1 - self._tokens) / _TOKENS_A_SECOND)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._grant()
