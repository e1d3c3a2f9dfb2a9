"""How many requests are in flight: found by trying, shared by all shards of the process.

The limit grows while requests succeed and is cut when the endpoint refuses some. After a cut it is halfway
back to where it was refused after one round of requests, and comes ever closer to it; from there on it feels
its way up in steps that double. So it is back soon after a dip, stays near the edge once that is known, and
finds new capacity in a number of rounds that is logarithmic. (The increase of BIC TCP: Xu, Harfoush and Rhee,
"Binary Increase Congestion Control for Fast Long-Distance Networks", INFOCOM 2004.) Where others ask the
same endpoint, the limit is also cut when answers take longer for its sake (`inflation`). Within the limit,
requests begin one after the other (`pace`).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from typing import Final, NamedTuple

from batch.contracts.shard import Usage
from batch.worker.inflation import ANSWERS, Inflation
from batch.worker.pace import TOGETHER_SECONDS, Pace

_CUT: Final = 0.75
#: What is left of the limit when answers take too long: the less the longer they take.
_LEAST_LEFT, _MOST_LEFT = 0.25, 0.9
_STEP_BESIDE_OTHERS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 0.1
# Below this share of its use a limit is not what holds requests back, so their success says nothing of it.
_IN_USE: Final = 0.8


class Permit(NamedTuple):
    """The right to have one request in flight.

    Parameters
    ----------
    begun_at
        When it was given, by the event loop's clock.
    epoch
        Counts the times that much has changed, as by a cut: what the endpoint says now of an earlier time
        says nothing of the present limit.
    """

    begun_at: float
    epoch: int


class ConcurrencyLimit:
    """The limit and who waits for it.

    Every permit is ended by one of `succeeded`, `refused` and `ended`.

    Parameters
    ----------
    start, least, most
        Where the limit begins, and between which it stays.
    inflation
        Says when answers take too long; None where nobody else asks the endpoint.
    """

    def __init__(self, *, start: int, least: int, most: int, inflation: Inflation | None = None) -> None:
        self._limit = float(start)
        self._least = float(least)
        self._most = float(most)
        #: Where the endpoint last refused; unknown at first.
        self._ceiling = 0.0
        self._step = start / 4 if inflation else float(start)
        self._successes = 0.0
        self._round = float(start)
        self._refusals_in_a_row = 0
        self._paused_until = 0.0
        self._in_flight = 0
        self._epoch = 0
        self._inflation = inflation
        self._is_cut_by_latency = False
        self._pace = Pace()
        self._is_due: asyncio.TimerHandle | None = None
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[Permit]]] = []

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        if self._inflation and self._inflation.learns:
            return int(self._least)
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
            waiter: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (order, next(self._numbers), waiter))
            self._admit()
            try:
                permit = await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self.ended()
                raise
        return permit

    def acquire_now(self) -> Permit | None:
        """Return a permit if there is one for which nobody waits."""
        if self._waiting or not self._has_room():
            return None
        return self._give()

    def succeeded(self, permit: Permit, usage: Usage) -> None:
        """End a permit whose request the endpoint answered.

        Parameters
        ----------
        permit
            Of `acquire`.
        usage
            What the endpoint counted for the answer.
        """
        now = self._now()
        self._pace.answered(now - permit.begun_at, self.limit)
        if permit.epoch == self._epoch:
            self._refusals_in_a_row = 0
            if self._inflation and self._inflation.learns:
                self._judge(self._inflation, permit, usage, now)
            elif self._in_flight >= _IN_USE * self.limit:
                self._grow()
                if self._inflation:
                    self._judge(self._inflation, permit, usage, now)
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
        if permit.epoch == self._epoch:
            self._is_cut_by_latency = False
            self._cut(_CUT)
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
        return self._in_flight < self.limit and self._now() >= max(self._paused_until, self._pace.next)

    def _give(self) -> Permit:
        now = self._now()
        self._in_flight += 1
        self._pace.begun(now, self._in_flight, self.limit)
        return Permit(now, self._epoch)

    def _admit(self) -> None:
        """Let those in who may, and come again when the next one may begin."""
        while self._waiting and self._has_room():
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(self._give())
        if self._waiting and self._is_due is None and self._in_flight < self.limit:
            begin = max(self._paused_until, self._pace.next, self._now() + TOGETHER_SECONDS)
            self._is_due = asyncio.get_running_loop().call_at(begin, self._admit_due)

    def _admit_due(self) -> None:
        self._is_due = None
        self._admit()

    def _judge(self, inflation: Inflation, permit: Permit, usage: Usage, now: float) -> None:
        """Cut the limit if answers take too long."""
        learnt = inflation.learns
        times = inflation.answered(usage, now - permit.begun_at, self.limit)
        if times > 1:
            # What waiting adds grows with what is in flight.
            self._is_cut_by_latency = True
            self._cut(min(_MOST_LEFT, max(_LEAST_LEFT, 1 / times)))
        elif inflation.learns != learnt:
            self._epoch += 1

    def _grow(self) -> None:
        self._limit = min(self._most, self._limit + self._step / self._round)
        self._successes += 1
        if self._successes >= self._round:
            self._begin_round()

    def _begin_round(self) -> None:
        """Choose how far the limit grows until as many requests as it allows have succeeded."""
        self._successes = 0.0
        self._round = self._limit
        if self._is_cut_by_latency:
            # No further than what was judged. The step is the same for all, while cuts are in proportion: so
            # workers that share an endpoint come to share it fairly.
            self._round, self._step = max(self._limit, ANSWERS), _STEP_BESIDE_OTHERS
        elif self._limit < self._ceiling - 1:
            self._step = max(1.0, (self._ceiling - self._limit) / 2)
        else:
            # Answers tell of what was in flight when their requests began: twice as much would be too late.
            self._step = min(self._step * 2, self._limit / 4 if self._inflation else self._limit)

    def _cut(self, share: float) -> None:
        self._ceiling = self._limit
        self._limit = max(self._least, self._limit * share)
        self._step = 1.0
        self._begin_round()
        self._epoch += 1

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
