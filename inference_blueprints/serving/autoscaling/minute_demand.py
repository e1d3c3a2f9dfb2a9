"""Demand per minute of recorded request rates."""

from __future__ import annotations

import math
import random

from inference_blueprints.serving.autoscaling.request_rates import RequestRates

_MINUTE = 60.0


def demand_per_minute(rates: RequestRates, seed: int, *, steps: bool = False) -> list[float]:
    """Return requests per second in each minute, by chance around the rates.

    The variance of the number of requests is the square of the coefficient of variation of the time between
    requests times its mean, as in a renewal process over a long time.

    seed: Of the random numbers.
    steps: Whether a rate holds for its whole window. Otherwise it changes evenly between two windows.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    found = []
    for minute in range(round((rates.end_seconds - rates.start_seconds) / _MINUTE)):
        seconds = rates.start_seconds + (minute + 0.5) * _MINUTE
        window = rates.window_at(seconds)
        mean = (window.rate if steps else rates.rate_at(seconds)) * _MINUTE
        found.append(max(0.0, chance.gauss(mean, window.variation * math.sqrt(mean))) / _MINUTE)
    return found
