"""The highest rate of requests at which latencies stay within objectives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field

from inference_blueprints.measure.simulation.offline_replay import SimulatedReplay
from inference_blueprints.spec.types import Objective, judge
from inference_contracts.records import dataclass

#: Factor between the tried rates. It is fixed, so that searches for several objectives share measurements.
STEP = 1.02
_LOWEST = 0.25
_HIGHEST = 1e6


def holds(objectives: Sequence[Objective], result: SimulatedReplay) -> bool:
    """Return whether a replay meets all objectives."""
    return all(each.met for each in judge(objectives, result.percentile_ms))


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

    def highest(self, objectives: Sequence[Objective]) -> tuple[float, SimulatedReplay | None]:
        """Return the highest rate within the objectives, and its replay. 0 and None if there is none.

        The search assumes that latencies grow with the rate. It doubles the rate until an objective
        is missed, then halves the interval down to one step.
        """
        low, high = -1, 0
        while _rate(high) < _HIGHEST and holds(objectives, self._at(high)):
            low, high = high, high + _doubling()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(objectives, self._at(middle)) else (low, middle)
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
