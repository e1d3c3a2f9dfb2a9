"""A replay that begins with few requests, rises to the peak and falls again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from inference_blueprints.measurement.replay.scaled_trace import ScaledRequest

#: Share of the trace's requests over the share of the time.
POINTS = ((0.0, 0.1), (0.15, 0.1), (0.4, 1.0), (0.55, 1.0), (0.75, 0.1), (1.0, 0.1))


def ramped(requests: Sequence[ScaledRequest], seconds: float, seed: int) -> tuple[ScaledRequest, ...]:
    """Leave out requests at random, so that their rate follows `POINTS`. The first one stays.

    Parameters
    ----------
    requests
        Requests at the peak rate.
    seconds
        How long they arrive.
    seed
        Chooses the requests.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    return tuple(
        each
        for number, each in enumerate(requests)
        if number == 0 or chance.random() < _share(each.arrival_seconds / seconds)
    )


def _share(time: float) -> float:
    for (begin, low), (end, high) in pairwise(POINTS):
        if time <= end:
            return low + (high - low) * (time - begin) / (end - begin)
    return POINTS[-1][1]
