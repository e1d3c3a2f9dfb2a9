"""Ends the work on a shard early: waiting requests stop, requests in flight finish."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Drain:
    """Tasks of a shard that may be cancelled while they wait."""

    def __init__(self) -> None:
        self._has_begun = False
        self._waiting: set[asyncio.Task[object]] = set()

    def begin(self) -> None:
        """Cancel every waiting task, now and later."""
        self._has_begun = True
        for task in self._waiting:
            task.cancel()

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Mark the running task as waiting for the duration of the ``with`` block.

        Raises asyncio.CancelledError if the end has started.
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
