"""Percentiles by linear interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile by linear interpolation between the closest ranks.

    values: Observations in any order.
    Returns: None if there are no values. Method 7 of Hyndman and Fan, "Sample Quantiles in Statistical
        Packages" (1996), the default of numpy and R.
    """
    if not values:
        return None
    ordered = sorted(values)
    rank = percent / 100 * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])
