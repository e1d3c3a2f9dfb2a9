"""What the front door's answers tell of a team's budget: whether its lines are sent, or wait.

A request that a budget refuses says nothing about the model, so only the lines of its team wait. While they
do, one of them asks again now and then: the budget may begin anew, be raised, or get back what was reserved.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from batch.worker.model_endpoint import Failure

_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 30.0
#: Time for which the money of a budget must have been refused until it counts as used up. Until then, it may
#: only be reserved for requests that are being answered.
USED_UP_SECONDS: Final = 30.0
#: Longest time for which a shard is given back then. The state machine sends it again sooner, because nobody
#: reports that it is in work (`batch_limits.TASK_HEARTBEAT_SECONDS`).
AGAIN_SECONDS: Final = 300.0


class TeamBudget:
    """The budgets of one team, as one process sees them. Times are those of the event loop."""

    def __init__(self) -> None:
        self._pause = 0.0
        self._begins_anew = 0.0
        #: When the first request was refused, and when the last one was that told something new.
        self._refused_since: float | None = None
        self._closed_at = float("-inf")
        self._next = 0.0
        self._opened = asyncio.Event()
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Whether no budget has refused the last requests."""
        return not self._pause

    @property
    def is_used_up(self) -> bool:
        """Whether the money has been refused for so long that nothing comes back soon."""
        since = self._refused_since
        return since is not None and _now() - since >= USED_UP_SECONDS

    @property
    def used_up(self) -> str:
        """What the door says of the money that is used up, for a row. Empty while there is some."""
        return self._reason if self._refused_since is not None else ""

    @property
    def seconds_left(self) -> float:
        """Time until the budget begins anew, as the door has said it."""
        return max(0.0, self._begins_anew - _now())

    async def opened(self) -> None:
        """Wait until requests of the team are admitted again, or until it is time that one asks."""
        while self._pause:
            left = self._next - _now()
            if left <= 0:
                self._next = _now() + self._pause
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._opened.wait()

    def admitted(self, begun_at: float) -> None:
        """Note that a request was answered.

        begun_at: When it was sent. One that was sent before others were refused tells nothing.
        """
        if self._pause and begun_at >= self._closed_at:
            self._pause, self._refused_since = 0.0, None
            self._opened.set()

    def refused(self, failure: Failure, begun_at: float) -> None:
        """Note that a budget has refused a request.

        failure: What the door has answered.
        begun_at: When the request was sent.
        """
        if self._pause and begun_at < self._closed_at:
            return
        now = _now()
        seconds = failure.retry_after_seconds or _LONGEST_SECONDS
        self._closed_at, self._begins_anew, self._reason = now, now + seconds, failure.message
        self._pause = min(_LONGEST_SECONDS, 2 * self._pause or _FIRST_SECONDS, max(seconds, _FIRST_SECONDS))
        self._next = now + self._pause
        self._opened.clear()
        if not failure.is_money:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now


def _now() -> float:
    return asyncio.get_running_loop().time()
