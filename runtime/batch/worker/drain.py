"""The end of a shard's work before its time: what waits is ended, what is in flight is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Drain:
    """Tasks of a shard that may be ended while they wait."""

    def __init__(self) -> None:
        self._has_begun = False
        self._waiting: set[asyncio.Task[object]] = set()

    def begin(self) -> None:
        """End every task that waits, and those that will."""
        self._has_begun = True
        for task in self._waiting:
            task.cancel()

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Mark the running task as one that waits, as long as the ``with`` block lasts.

        Raises
        ------
        asyncio.CancelledError
            If the end has begun.
        """
        if self._has_begun:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can wait")
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)
