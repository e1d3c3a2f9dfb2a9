"""The highest rate of requests at which latencies stay within objectives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from inference_blueprints.simulation.offline_replay import SimulatedReplay

#: Rates are tried on steps of this factor, so that searches for several objectives share what they measured.
STEP = 1.02
_LOWEST = 0.25
_HIGHEST = 1e6


@dataclass(frozen=True, slots=True)
class LatencyLimits:
    """What the 90th percentiles may be, in milliseconds."""

    time_to_first_token_p90_ms: float = math.inf
    time_per_output_token_p90_ms: float = math.inf

    def hold(self, result: SimulatedReplay) -> bool:
        """Return whether a replay kept them."""
        return (
            result.time_to_first_token.p90 <= self.time_to_first_token_p90_ms
            and result.time_per_output_token.p90 <= self.time_per_output_token_p90_ms
        )


@dataclass(frozen=True, slots=True)
class RateSearch:
    """Searches with one memory of what was measured.

    Parameters
    ----------
    measure
        Replays at a rate in requests a second.
    """

    measure: Callable[[float], SimulatedReplay]
    _known: dict[int, SimulatedReplay] = field(default_factory=dict)

    @property
    def replays(self) -> int:
        """How often it has measured."""
        return len(self._known)

    def highest(self, limits: LatencyLimits) -> tuple[float, SimulatedReplay | None]:
        """Return the highest rate within limits, and the replay at it; 0 and None if there is none.

        Latencies are taken to grow with the rate. The search doubles until they are too long, then halves the
        interval down to one step.

        Parameters
        ----------
        limits
            What is to be kept.
        """
        low, high = -1, 0
        while _rate(high) < _HIGHEST and limits.hold(self._at(high)):
            low, high = high, high + _doubling()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if limits.hold(self._at(middle)) else (low, middle)
        return (0.0, None) if low < 0 else (_rate(low), self._at(low))

    def _at(self, step: int) -> SimulatedReplay:
        if step not in self._known:
            self._known[step] = self.measure(_rate(step))
        return self._known[step]


def _rate(step: int) -> float:
    return float(_LOWEST * STEP**step)


def _doubling() -> int:
    """Return how many steps double a rate."""
    return math.ceil(math.log(2) / math.log(STEP))
