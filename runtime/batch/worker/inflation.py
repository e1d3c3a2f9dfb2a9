"""How much longer answers take than at an endpoint of which this worker asks little.

Who asks an endpoint beside this worker waits longer for its sake long before anything is refused, and the
worker cannot see it but by its own answers. So from time to time it asks little for a while and learns how
long answers take then, by their lengths; after that it compares. What others do at the endpoint is in both.
(Learning the least by doing less for a while is how BBR finds a path's own delay: Cardwell et al., "BBR:
Congestion-Based Congestion Control", ACM Queue 14(5), 2016.)
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Final

from batch.contracts.shard import Usage

#: Answers to judge by.
ANSWERS: Final = 32
#: Answers to learn from, or those of so many seconds where they take long.
_LEARNT_FROM: Final = 16
_LEARNT_SECONDS: Final = 60.0
#: It is learnt anew so often, at the same moments by all workers: one shall not take another for somebody who
#: asks beside it.
_RENEWED_SECONDS: Final = 900.0

_Length = tuple[int, int]


class Inflation:
    """Learns and compares by turns.

    Parameters
    ----------
    most
        How many times as long answers may take.
    clock
        Seconds since 1970; tests have their own.
    """

    def __init__(self, most: float, *, clock: Callable[[], float] = time.time) -> None:
        self._most = most
        self._clock = clock
        #: Seconds for a token of an answer, by the lengths of prompt and answer.
        self._quiet: dict[_Length, float] = {}
        self._learns = True
        self._since: float | None = None
        self._renewed_at = 0.0
        self._seen: defaultdict[_Length, list[float]] = defaultdict(list)
        self._compared: list[float] = []
        self._unknown = 0

    @property
    def learns(self) -> bool:
        """Whether little must be asked now."""
        return self._learns

    def answered(self, usage: Usage, seconds: float, limit: int) -> float:
        """Take note of an answer whose request began since the limit or `learns` last changed.

        Parameters
        ----------
        usage
            What the endpoint counted for it.
        seconds
            How long it took.
        limit
            Requests that may be in flight: there are no fewer answers to a judgement.

        Returns
        -------
        float
            How many times as much as it may is added to answers, by the median of those since the last
            judgement; 0 while there is none.
        """
        now = self._clock()
        if self._since is None:
            self._since = now - seconds
        computed = usage.input_tokens - usage.cached_tokens
        length = (computed.bit_length(), usage.output_tokens.bit_length())
        value = seconds / (1 + usage.output_tokens)
        if self._learns:
            self._learn(length, value, now)
            return 0.0
        known = self._quiet.get(length)
        if known is None:
            self._unknown += 1
        else:
            self._compared.append(value / known)
        if now >= self._renewed_at or self._unknown > max(ANSWERS, len(self._compared)):
            self._begin(learns=True)
            return 0.0
        if len(self._compared) < max(ANSWERS, limit):
            return 0.0
        times = max(0.0, (median(self._compared) - 1) / (self._most - 1))
        self._begin(learns=False)
        return times

    def _learn(self, length: _Length, value: float, now: float) -> None:
        self._seen[length].append(value)
        is_enough = sum(map(len, self._seen.values())) >= _LEARNT_FROM
        if self._since is None or not (is_enough or now >= self._since + _LEARNT_SECONDS):
            return
        # Of lengths that did not come this time, the last word holds.
        self._quiet |= {length: median(values) for length, values in self._seen.items()}
        self._renewed_at = (now // _RENEWED_SECONDS + 1) * _RENEWED_SECONDS
        self._begin(learns=False)

    def _begin(self, *, learns: bool) -> None:
        """Begin to learn or to compare; what was seen until now says nothing of it."""
        self._learns = learns
        self._since = None
        self._seen.clear()
        self._compared.clear()
        self._unknown = 0
