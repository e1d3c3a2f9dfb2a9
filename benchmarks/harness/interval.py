"""The interval in which the mean of a few rounds lies with 95 % confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.harness.figure import Figure

#: Rounds of a measurement that has an interval, unless it says otherwise.
ROUNDS: Final = 10
#: 97.5 % of Student's t by the number of rounds, with one degree of freedom less.
_QUANTILES: Final = {10: 2.262, 16: 2.131}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower end, the mean and the upper end.

    values: One of each round.
    Raises ValueError if the quantile for their number is not known.
    """
    if len(values) not in _QUANTILES:
        known = " or ".join(map(str, _QUANTILES))
        raise ValueError(f"got {len(values)} rounds; an interval needs {known}")
    mean = statistics.mean(values)
    half = _QUANTILES[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean, mean + half


def interval_figures(name: str, values: Sequence[float], unit: str, *, goal: float) -> Iterator[Figure]:
    """Yield the ends and the mean as simulated figures. The goal applies to the upper end.

    name: Name of the figure. Where the interval contains the goal, that of the mean ends with
        ``_inconclusive``.
    goal: What the value should be at most.
    """
    lower, middle, upper = interval(values)
    doubtful = "_inconclusive" if lower <= goal < upper else ""
    yield Figure(f"{name}_lower", lower, unit, simulated=True)
    yield Figure(f"{name}{doubtful}", middle, unit, simulated=True)
    yield Figure(f"{name}_upper", upper, unit, goal=goal, simulated=True)
