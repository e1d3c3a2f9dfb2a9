"""Limits the requests in flight; the limit adapts by trial and is shared by all shards of the process.

The limit grows while requests succeed, and is cut when the endpoint refuses some. After a cut, one round of
requests raises it halfway back to the value at which the endpoint refused. Further rounds approach that
value. Above it, the steps double. So the limit recovers quickly from a dip, stays near the known edge, and
finds new capacity in a logarithmic number of rounds. (This is the increase of BIC TCP: Xu, Harfoush and Rhee,
"Binary Increase Congestion Control for Fast Long-Distance Networks", INFOCOM 2004.) If other clients use the
same endpoint, the limit is also cut when it makes answers slower (`inflation`). Within the limit, requests
are spaced in time (`pace`). `narrow` gives away a part of the limit, which does not grow meanwhile. `hold`
keeps all requests back, until `release`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from typing import Final, NamedTuple

from batch.contracts.shard import Usage
from batch.worker.inflation import ANSWERS, Inflation

# Spaces requests in time, so that many do not start at once.
#
# If answers take equally long, requests that start together end together, and so do the requests that follow
# them. The endpoint then gets bursts with pauses, and other clients wait behind each burst. So the starts of
# requests are spread over the duration of an answer, as TCP pacing does (Aggarwal, Savage and Anderson,
# "Understanding the Performance of TCP Pacing", INFOCOM 2000; the gains are those of Linux,
# ``tcp_pacing_ss_ratio`` and ``tcp_pacing_ca_ratio``).

#: Factors by which requests start faster than they end: far below the limit, and near it.
_GAIN_BELOW, _GAIN_NEAR = 2.0, 1.25
_NEAR: Final = 0.8
#: Requests within this time may start together. Separate timers would cost more than they spread.
TOGETHER_SECONDS: Final = 0.02


class Pace:
    """Start times of requests."""

    def __init__(self) -> None:
        self._answer_seconds = 0.0
        self._next = float("-inf")

    def answered(self, seconds: float, limit: int) -> None:
        """Record the duration of an answer.

        The mean covers about as many of the last answers as there may be requests in flight.

        seconds: Time since the start of its request.
        limit: Requests that may be in flight.
        """
        self._answer_seconds += (seconds - self._answer_seconds) / (limit if self._answer_seconds else 1)

    @property
    def next(self) -> float:
        """Earliest time of the next start, by the clock passed to `record_start`."""
        return self._next

    def record_start(self, now: float, in_flight: int, limit: int) -> None:
        """Record the start of a request.

        now: By any clock, but always the same one.
        in_flight, limit: Number of requests in flight, and their limit.
        """
        gain = _GAIN_NEAR if in_flight >= _NEAR * limit else _GAIN_BELOW
        self._next = max(self._next, now - TOGETHER_SECONDS) + self._answer_seconds / (gain * limit)


_CUT: Final = 0.75
#: Range of the cut when answers take too long: the longer they take, the less remains of the limit.
_MIN_LEFT, _MAX_LEFT = 0.25, 0.9
_STEP_BESIDE_OTHERS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_MAX_DOUBLINGS: Final = 10
# If a smaller share of the limit is in use, the limit does not hold requests back, and their success tells
# nothing about it.
_IN_USE: Final = 0.8


class Permit(NamedTuple):
    """Permission to have one request in flight."""

    begun_at: float
    """Start time, by the event loop's clock."""
    epoch: int
    """Counts large changes of the limit, such as cuts. An answer to a request of an earlier epoch tells
    nothing about the current limit."""


class ConcurrencyLimit:
    """The limit and its waiting tasks.

    Each permit must end with one of `succeeded`, `refused` and `ended`.

    start, minimum, maximum: Initial value of the limit, and its range.
    inflation: Detects answers that take too long; None if the endpoint has no other clients.
    """

    def __init__(self, *, start: int, minimum: int, maximum: int, inflation: Inflation | None = None) -> None:
        self._limit = float(start)
        self._share = 1.0
        self._minimum = float(minimum)
        self._maximum = float(maximum)
        #: Limit at which the endpoint last refused; unknown at first.
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
        self._is_held = False
        self._is_idle: asyncio.Event | None = None

    @property
    def limit(self) -> int:
        """Number of requests that may be in flight now."""
        limit = self._minimum if self._inflation and self._inflation.learns else self._limit
        return int(limit) if self._share == 1 else max(1, int(limit * self._share))

    def narrow(self, share: float) -> None:
        """Allow only a share of the limit from now on. One request stays allowed, so that shards continue.

        Requests that are in flight end by themselves.

        share: Between 0 and 1; 1 allows all of it.
        """
        self._share = share
        self._epoch += 1
        self._admit()

    def hold(self) -> None:
        """Give no permit until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Give permits again."""
        self._is_held = False
        self._admit()

    async def idle(self) -> None:
        """Wait until no request is in flight. Only while it is held."""
        while self._in_flight:
            self._is_idle = self._is_idle or asyncio.Event()
            await self._is_idle.wait()

    @property
    def in_flight(self) -> int:
        """Number of requests in flight."""
        return self._in_flight

    async def acquire(self, order: int) -> Permit:
        """Wait for a permit. The lowest order goes first, then the first to wait.

        order: For example a shard's index among those of the process, so that the oldest ends first.
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
        """Return a permit if one is free and no task waits."""
        if self._waiting or not self._has_room():
            return None
        return self._give()

    def succeeded(self, permit: Permit, usage: Usage) -> None:
        """End the permit of a request that the endpoint answered.

        usage: Token counts of the answer.
        """
        now = self._now()
        self._pace.answered(now - permit.begun_at, self.limit)
        if permit.epoch == self._epoch:
            self._refusals_in_a_row = 0
            if self._inflation and self._inflation.learns:
                self._judge(self._inflation, permit, usage, now)
            elif self._in_flight >= _IN_USE * self.limit:
                if self._share == 1:
                    self._grow()
                if self._inflation:
                    self._judge(self._inflation, permit, usage, now)
        self.ended()

    def refused(self, permit: Permit, retry_after_seconds: float | None = None) -> None:
        """End the permit of a request that the endpoint refused as too busy.

        All requests then pause for a while.

        retry_after_seconds: Pause that the endpoint asked for. Without it, the pause grows with each refusal
            in a row.
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
        """End the permit of a request that tells nothing about the limit."""
        self._in_flight -= 1
        if self._is_idle and not self._in_flight:
            self._is_idle.set()
            self._is_idle = None
        self._admit()

    def _has_room(self) -> bool:
        if self._is_held:
            return False
        return self._in_flight < self.limit and self._now() >= max(self._paused_until, self._pace.next)

    def _give(self) -> Permit:
        now = self._now()
        self._in_flight += 1
        self._pace.record_start(now, self._in_flight, self.limit)
        return Permit(now, self._epoch)

    def _admit(self) -> None:
        """Admit waiting tasks, and schedule the next call for the time when the next one may start."""
        while self._waiting and self._has_room():
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(self._give())
        if self._is_held:
            return
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
            # The added waiting time grows with the number of requests in flight.
            self._is_cut_by_latency = True
            self._cut(min(_MAX_LEFT, max(_MIN_LEFT, 1 / times)))
        elif inflation.learns != learnt:
            self._epoch += 1

    def _grow(self) -> None:
        self._limit = min(self._maximum, self._limit + self._step / self._round)
        self._successes += 1
        if self._successes >= self._round:
            self._begin_round()

    def _begin_round(self) -> None:
        """Choose the growth of the limit for the next round: one success per allowed request."""
        self._successes = 0.0
        self._round = self._limit
        if self._is_cut_by_latency:
            # Do not grow beyond the judged range. Steps are equal for all workers, while cuts are
            # proportional. So workers that share an endpoint come to share it fairly.
            self._round, self._step = max(self._limit, ANSWERS), _STEP_BESIDE_OTHERS
        elif self._limit < self._ceiling - 1:
            self._step = max(1.0, (self._ceiling - self._limit) / 2)
        else:
            # Answers reflect the load when their requests started, so doubling would react too late.
            self._step = min(self._step * 2, self._limit / 4 if self._inflation else self._limit)

    def _cut(self, share: float) -> None:
        self._ceiling = self._limit
        self._limit = max(self._minimum, self._limit * share)
        self._step = 1.0
        self._begin_round()
        self._epoch += 1

    def _own_pause(self) -> float:
        # Refusals of a day in a row would exceed what a number can hold.
        doublings = min(self._refusals_in_a_row, _MAX_DOUBLINGS)
        longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0**doublings)
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads workers, no security purpose

    def _pause(self, seconds: float) -> None:
        until = self._now() + min(seconds, _LONGEST_PAUSE_SECONDS)
        if until > self._paused_until:
            self._paused_until = until
            asyncio.get_running_loop().call_at(until, self._admit)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
