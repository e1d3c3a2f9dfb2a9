"""How many requests are in flight: found by trying, shared by all shards of the process.

The limit grows while requests succeed and is cut when the endpoint refuses some. After a cut it is halfway
back to where it was refused after one round of requests, and comes ever closer to it; from there on it feels
its way up in steps that double. So it is back soon after a dip, stays near the edge once that is known, and
finds new capacity in a number of rounds that is logarithmic. (The increase of BIC TCP: Xu, Harfoush and Rhee,
"Binary Increase Congestion Control for Fast Long-Distance Networks", INFOCOM 2004.)
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from dataclasses import dataclass
from typing import Final

_CUT: Final = 0.75
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 0.1
# Below this share of its use a limit is not what holds requests back, so their success says nothing of it.
_IN_USE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to have one request in flight.

    Parameters
    ----------
    cuts
        How often the limit had been cut when it was given: what the endpoint refuses now of an earlier time
        says nothing of the present limit.
    """

    cuts: int


class ConcurrencyLimit:
    """The limit and who waits for it.

    Every permit is ended by one of `succeeded`, `refused` and `ended`.

    Parameters
    ----------
    start, least, most
        Where the limit begins, and between which it stays.
    """

    def __init__(self, *, start: int, least: int, most: int) -> None:
        self._limit = float(start)
        self._least = float(least)
        self._most = float(most)
        #: Where the endpoint last refused; unknown at first.
        self._ceiling = 0.0
        self._step = float(start)
        self._successes = 0.0
        self._round = float(start)
        self._refusals_in_a_row = 0
        self._paused_until = 0.0
        self._in_flight = 0
        self._permit = Permit(0)
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """Requests that are."""
        return self._in_flight

    async def acquire(self, order: int) -> Permit:
        """Wait for a permit; the lowest order goes first, then who came first.

        Parameters
        ----------
        order
            Such as a shard's place among those of the process, so that the oldest ends first.
        """
        permit = self.acquire_now()
        if permit is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (order, next(self._numbers), waiter))
            self._admit()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self.ended()
                raise
        return permit or self._permit

    def acquire_now(self) -> Permit | None:
        """Return a permit if there is one for which nobody waits."""
        if self._waiting or not self._has_room():
            return None
        self._in_flight += 1
        return self._permit

    def succeeded(self, permit: Permit) -> None:
        """End a permit whose request the endpoint answered.

        Parameters
        ----------
        permit
            Of `acquire`.
        """
        if permit is self._permit:
            self._refusals_in_a_row = 0
            if self._in_flight >= _IN_USE * self.limit:
                self._grow()
        self.ended()

    def refused(self, permit: Permit, retry_after_seconds: float | None = None) -> None:
        """End a permit whose request the endpoint was too busy for; nothing is sent for a while.

        Parameters
        ----------
        permit
            Of `acquire`.
        retry_after_seconds
            What the endpoint asked for; without it ever longer, while all it does is refuse.
        """
        if permit is self._permit:
            self._cut()
            self._refusals_in_a_row += 1
            self._pause(self._own_pause() if retry_after_seconds is None else retry_after_seconds)
        elif retry_after_seconds is not None:
            self._pause(retry_after_seconds)
        self.ended()

    def ended(self) -> None:
        """End a permit whose request says nothing of the limit."""
        self._in_flight -= 1
        self._admit()

    def _has_room(self) -> bool:
        return self._in_flight < self.limit and self._now() >= self._paused_until

    def _admit(self) -> None:
        """Let those in who may."""
        while self._waiting and self._has_room():
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                self._in_flight += 1
                waiter.set_result(None)

    def _grow(self) -> None:
        self._limit = min(self._most, self._limit + self._step / self._round)
        self._successes += 1
        if self._successes >= self._round:
            self._begin_round()

    def _begin_round(self) -> None:
        """Choose how far the limit grows until as many requests as it allows have succeeded."""
        self._successes, self._round = 0.0, self._limit
        if self._limit < self._ceiling - 1:
            self._step = max(1.0, (self._ceiling - self._limit) / 2)
        else:
            self._step = min(self._step * 2, self._limit)

    def _cut(self) -> None:
        self._ceiling = self._limit
        self._limit = max(self._least, self._limit * _CUT)
        self._step = 1.0
        self._begin_round()
        self._permit = Permit(self._permit.cuts + 1)

    def _own_pause(self) -> float:
        longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0**self._refusals_in_a_row)
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads workers, guards nothing

    def _pause(self, seconds: float) -> None:
        until = self._now() + min(seconds, _LONGEST_PAUSE_SECONDS)
        if until > self._paused_until:
            self._paused_until = until
            asyncio.get_running_loop().call_at(until, self._admit)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
