"""Spaces requests in time, so that many do not start at once.

If answers take equally long, requests that start together end together, and so do the requests that follow
them. The endpoint then gets bursts with pauses, and other clients wait behind each burst. So the starts of
requests are spread over the duration of an answer, as TCP pacing does (Aggarwal, Savage and Anderson,
"Understanding the Performance of TCP Pacing", INFOCOM 2000; the gains are those of Linux,
``tcp_pacing_ss_ratio`` and ``tcp_pacing_ca_ratio``).
"""

from __future__ import annotations

from typing import Final

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
