"""Measures how much longer answers take than at an endpoint with little load.

Other clients of an endpoint wait longer because of this worker, long before the endpoint refuses anything.
The worker can see that only in its own answers. So from time to time it sends few requests for a while, and
learns how long answers take then, by their lengths. After that it compares. The load of other clients is in
both measurements. (BBR measures a path's own delay in the same way: Cardwell et al., "BBR: Congestion-Based
Congestion Control", ACM Queue 14(5), 2016.)
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Final

from batch.contracts.shard import Usage

#: Least number of answers for a judgement.
ANSWERS: Final = 32
#: Answers for learning, or the seconds after which learning ends if answers take long.
_LEARNT_FROM: Final = 16
_LEARNT_SECONDS: Final = 60.0
#: Interval of learning. All workers learn at the same times, so that no worker mistakes the
#: load of another worker for the load of other clients.
_RENEWED_SECONDS: Final = 900.0

_Length = tuple[int, int]


class Inflation:
    """Alternates between learning and comparing.

    maximum: Highest factor on the time of answers.
    clock: Returns seconds since 1970. Tests set their own.
    """

    def __init__(self, maximum: float, *, clock: Callable[[], float] = time.time) -> None:
        self._maximum = maximum
        self._clock = clock
        #: Seconds per output token, by the lengths of prompt and answer.
        self._quiet: dict[_Length, float] = {}
        self._learns = True
        self._since: float | None = None
        self._renewed_at = 0.0
        self._seen: defaultdict[_Length, list[float]] = defaultdict(list)
        self._compared: list[float] = []
        self._unknown = 0

    @property
    def learns(self) -> bool:
        """Whether few requests must be in flight now."""
        return self._learns

    def answered(self, usage: Usage, seconds: float, limit: int) -> float:
        """Record an answer whose request started after the last change of the limit or of `learns`.

        usage: Token counts of the answer.
        seconds: Duration of the request.
        limit: Requests that may be in flight. A judgement uses at least that many answers.
        Returns: The median added time of the answers since the last judgement, as a multiple of the allowed
            added time; 0 if there is no judgement yet.
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
        times = max(0.0, (median(self._compared) - 1) / (self._maximum - 1))
        self._begin(learns=False)
        return times

    def _learn(self, length: _Length, value: float, now: float) -> None:
        self._seen[length].append(value)
        is_enough = sum(map(len, self._seen.values())) >= _LEARNT_FROM
        if self._since is None or not (is_enough or now >= self._since + _LEARNT_SECONDS):
            return
        # Lengths without new answers keep their last value.
        self._quiet |= {length: median(values) for length, values in self._seen.items()}
        self._renewed_at = (now // _RENEWED_SECONDS + 1) * _RENEWED_SECONDS
        self._begin(learns=False)

    def _begin(self, *, learns: bool) -> None:
        """Start to learn or to compare, and drop all earlier observations."""
        self._learns = learns
        self._since = None
        self._seen.clear()
        self._compared.clear()
        self._unknown = 0
