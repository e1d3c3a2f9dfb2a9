"""An event loop whose clock is turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

Words = TypeVarTuple("Words")
Result = TypeVar("Result")


class TurnedLoop(asyncio.SelectorEventLoop):
    """A loop that never waits: when all it has to do lies ahead, its clock goes there.

    Blocking functions run at once and not in threads, for which no clock of ours would stand still.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0

    def time(self) -> float:
        return self._now

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002 - there are no threads
        func: Callable[[*Words], Result],
        *args: *Words,
    ) -> asyncio.Future[Result]:
        future: asyncio.Future[Result] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the caller's to handle, as from a thread
            future.set_exception(error)
        return future

    def _run_once(self) -> None:
        # A timer that was cancelled would be dropped only after this, and the next one waited for.
        if not self._ready:  # type: ignore[attr-defined]
            ahead = [each for each in self._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
            self._now = max(self._now, min((each.when() for each in ahead), default=self._now))
        super()._run_once()  # type: ignore[misc]


def turn(coroutine: Coroutine[Any, Any, Any]) -> Any:
    loop = TurnedLoop()
    try:
        return loop.run_until_complete(asyncio.wait_for(coroutine, 1e7))
    finally:
        loop.close()
