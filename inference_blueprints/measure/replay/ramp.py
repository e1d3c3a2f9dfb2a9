"""A replay that begins with few requests, rises to the peak and falls again."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

from inference_blueprints.measure.replay.recorded_trace import Trace
from inference_blueprints.measure.replay.scaled_trace import ScaledRequest

#: Pairs of a share of the time, and the share of the trace's requests at it.
RampPoints = tuple[tuple[float, float], ...]
POINTS: RampPoints = ((0.0, 0.1), (0.15, 0.1), (0.4, 1.0), (0.55, 1.0), (0.75, 0.1), (1.0, 0.1))
_LOW = 0.4
#: Two equal ramps, which begin and end higher.
TWO_RAMPS: RampPoints = tuple(
    (start + time / 2, max(_LOW, share)) for start in (0.0, 0.5) for time, share in POINTS
)


def long_enough(trace: Trace, peak: float, seconds: float) -> Trace:
    """Return a trace, repeated if it has too few requests for a ramp.

    trace: Recorded requests.
    peak: Requests per second at the peak.
    seconds: How long they arrive.
    """
    return trace.repeated(math.ceil(seconds * peak / len(trace.requests)))


def apply_ramp(
    requests: Sequence[ScaledRequest], seconds: float, seed: int, points: RampPoints = POINTS
) -> tuple[ScaledRequest, ...]:
    """Leave out requests at random, so that their rate follows a ramp. The first one stays.

    requests: Requests at the peak rate.
    seed: Chooses the requests.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    return tuple(
        each
        for number, each in enumerate(requests)
        if number == 0 or chance.random() < share_at(each.arrival_seconds / seconds, points)
    )


def share_at(time: float, points: RampPoints) -> float:
    """Return the share of the peak rate at a share of the time."""
    for (begin, low), (end, high) in pairwise(points):
        if time <= end:
            return low + (high - low) * (time - begin) / (end - begin) if end > begin else high
    return points[-1][1]
