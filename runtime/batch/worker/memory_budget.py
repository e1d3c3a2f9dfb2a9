"""Limits the bytes held at the same time."""

from __future__ import annotations

import asyncio
from collections import deque


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
