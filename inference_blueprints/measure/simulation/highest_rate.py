"""The highest rate of requests at which latencies stay within objectives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from inference_blueprints.measure.simulation.offline_replay import SimulatedReplay

#: Factor between the tried rates. It is fixed, so that searches for several objectives share measurements.
STEP = 1.02
_LOWEST = 0.25
_HIGHEST = 1e6


@dataclass(frozen=True, slots=True)
class LatencyLimits:
    """Limits on the 90th percentiles, in milliseconds."""

    time_to_first_token_p90_ms: float = math.inf
    time_per_output_token_p90_ms: float = math.inf

    def hold(self, result: SimulatedReplay) -> bool:
        """Return whether a replay is within the limits."""
        return (
            result.time_to_first_token.p90 <= self.time_to_first_token_p90_ms
            and result.time_per_output_token.p90 <= self.time_per_output_token_p90_ms
        )


@dataclass(frozen=True, slots=True)
class RateSearch:
    """Searches that share their measurements."""

    measure: Callable[[float], SimulatedReplay]
    """Replays at a rate in requests per second."""
    _known: dict[int, SimulatedReplay] = field(default_factory=dict)

    @property
    def replays(self) -> int:
        """Number of measurements."""
        return len(self._known)

    def highest(self, limits: LatencyLimits) -> tuple[float, SimulatedReplay | None]:
        """Return the highest rate within limits, and its replay. 0 and None if there is none.

        The search assumes that latencies grow with the rate. It doubles the rate until a limit is exceeded,
        then
        halves the interval down to one step.
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
    """Return the number of steps that double a rate."""
    return math.ceil(math.log(2) / math.log(STEP))
