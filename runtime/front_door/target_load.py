"""What the replicas know of the load of targets, without asking them.

Every request to a target passes through a replica, so together they know how many are in progress. Each
replica counts its own at once, and twice a second writes its numbers to the store and reads those of the
others. Frontends are not asked for their queues: each serving stack names its metrics differently, a scrape
is as old as what replicas tell each other, and it would need a way around the front door's own rules.

How many requests a target takes is what its largest number of workers answers at once. With fewer, requests
wait there, and that is what makes the autoscaler add workers: a door that let in no more than those of today
answer would keep the deployment small. A target that refuses because it is full says where waiting ends, so
each refusal lowers its bound to three quarters of what is in progress, at most once a second, and the bound
grows back by a hundredth of the largest number each second.
"""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

#: Time over which the ends of requests are counted.
_RATE_SECONDS: Final = 10
#: Longest time that callers are told to wait: the load is not known further ahead.
_MOST_WAIT_SECONDS: Final = 60
#: Time for which a target that says it is full gets no further request, and in which its bound is cut once.
_FULL_SECONDS: Final = 1.0
_CUT: Final = 0.75
#: Share of the largest number by which a bound grows back in a second.
_GROWTH: Final = 0.01


class TargetLoads:
    """The load of all targets.

    clock: A clock that only goes forward, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.own: collections.Counter[str] = collections.Counter()
        self._others: Mapping[str, float] = {}
        self._ends: dict[str, collections.deque[tuple[int, int]]] = {}
        self._full_until: dict[str, float] = {}
        self._cuts: dict[str, tuple[float, float]] = {}

    def began(self, cluster: str) -> None:
        """Note that a request was admitted."""
        self.own[cluster] += 1

    def ended(self, cluster: str, *, is_full: bool) -> None:
        """Note that a request has ended.

        is_full: Whether the target has refused it because it is full.
        """
        if self.own[cluster] > 0:
            self.own[cluster] -= 1
        if is_full:
            self._cut(cluster)
        second = int(self._clock())
        ends = self._ends.setdefault(cluster, collections.deque(maxlen=_RATE_SECONDS + 1))
        if ends and ends[-1][0] == second:
            ends[-1] = (second, ends[-1][1] + 1)
        else:
            ends.append((second, 1))

    def set_others(self, others: Mapping[str, float]) -> None:
        """Take the requests in progress at all other replicas, by target."""
        self._others = others

    def all_in_progress(self) -> Mapping[str, float]:
        """Return the requests in progress at each target, of all replicas."""
        return {each: self.own[each] + self._others.get(each, 0.0) for each in {*self.own, *self._others}}

    def bound(self, cluster: str, most: float) -> float:
        """Return how many requests may be in progress at a target by what it has refused.

        most: What its largest number of workers answers at once.
        """
        cut = self._cuts.get(cluster)
        if cut is None:
            return most
        number, at = cut
        return min(most, number + _GROWTH * most * (self._clock() - at))

    def _cut(self, cluster: str) -> None:
        now = self._clock()
        if now >= self._full_until.get(cluster, 0.0):
            total = self.own[cluster] + self._others.get(cluster, 0.0)
            self._cuts[cluster] = (_CUT * total, now)
        self._full_until[cluster] = now + _FULL_SECONDS

    def in_progress(self, cluster: str) -> float:
        """Return the requests in progress at a target, of all replicas. Infinite while it says it is full."""
        if self._full_until and self._full_until.get(cluster, 0.0) > self._clock():
            return math.inf
        return self.own[cluster] + self._others.get(cluster, 0.0)

    def seconds_until(self, cluster: str, fewer: float) -> int:
        """Return the seconds until so many requests are expected to have ended at a target.

        Of all ends, this replica sees its own share.
        """
        if math.isinf(fewer):
            return math.ceil(_FULL_SECONDS)
        now = int(self._clock())
        ends = [each for each in self._ends.get(cluster, ()) if now - each[0] <= _RATE_SECONDS]
        total = self.own[cluster] + self._others.get(cluster, 0.0)
        share = self.own[cluster] / total if total else 1.0
        seconds = max(1, now - ends[0][0] + 1) if ends else 1
        rate = sum(count for _, count in ends) / seconds / max(share, 0.01)
        if not rate:
            return _MOST_WAIT_SECONDS
        return min(_MOST_WAIT_SECONDS, max(1, math.ceil(fewer / rate)))
