"""Requests begun one after the other rather than many at once.

Where answers take equally long, requests that begin together end together, and so do those that follow them:
the endpoint gets a crowd and then nothing, and whoever else asks it waits behind the crowd. So the moments at
which requests begin are spread over the time that an answer takes, as TCP paces what it sends
(Aggarwal, Savage and Anderson, "Understanding the Performance of TCP Pacing", INFOCOM 2000; its gains are
those of Linux, ``tcp_pacing_ss_ratio`` and ``tcp_pacing_ca_ratio``).
"""

from __future__ import annotations

from typing import Final

#: Faster than requests end: while there is much room, and while little is left.
_GAIN_BELOW, _GAIN_NEAR = 2.0, 1.25
_NEAR: Final = 0.8
#: Those of so long a time may begin together: looking at each alone costs more than it spreads.
TOGETHER_SECONDS: Final = 0.02


class Pace:
    """When the next request may begin."""

    def __init__(self) -> None:
        self._answer_seconds = 0.0
        self._next = float("-inf")

    def answered(self, seconds: float, limit: int) -> None:
        """Take note of how long an answer took; the last ones count, as many as may be in flight.

        Parameters
        ----------
        seconds
            From the beginning of its request.
        limit
            Requests that may be in flight.
        """
        self._answer_seconds += (seconds - self._answer_seconds) / (limit if self._answer_seconds else 1)

    @property
    def next(self) -> float:
        """When, by the clock of the beginnings."""
        return self._next

    def begun(self, now: float, in_flight: int, limit: int) -> None:
        """Take note of a beginning.

        Parameters
        ----------
        now
            By any clock, the same each time.
        in_flight, limit
            Requests that are in flight and may be.
        """
        gain = _GAIN_NEAR if in_flight >= _NEAR * limit else _GAIN_BELOW
        self._next = max(self._next, now - TOGETHER_SECONDS) + self._answer_seconds / (gain * limit)
