"""The state of an alarm from its last data points, some of which may be missing.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OK: Final = "OK"
ALARM: Final = "ALARM"
INSUFFICIENT_DATA: Final = "INSUFFICIENT_DATA"
#: Values of `TreatMissingData`.
TREATMENTS: Final = ("breaching", "notBreaching", "ignore", "missing")
#: Data points beyond the evaluation periods. AWS publishes no formula; its examples retrieve 5 for 3 periods.
_EXTRA_POINTS: Final = 2


@dataclass(frozen=True, slots=True)
class StateDecision:
    """What the data points of an alarm say."""

    state: str | None
    """The new state. None if the alarm keeps the one that it has."""
    counted: tuple[int, ...]
    """Positions of the data points that decided, in order."""
    filled: int
    """Number of missing data points that were replaced."""


def evaluation_range(evaluation_periods: int) -> int:
    """Return how many data points are retrieved for an evaluation."""
    return evaluation_periods + _EXTRA_POINTS


def decide(
    points: Sequence[bool | None], *, evaluation_periods: int, datapoints_to_alarm: int, treatment: str
) -> StateDecision:
    """Decide the state of an alarm.

    points: The data points of the evaluation range, the latest last: whether it breaches, None if it is
        missing.
    evaluation_periods: Data points to evaluate, N.
    datapoints_to_alarm: How many of them must breach, M.
    treatment: One of `TREATMENTS`.
    """
    present = tuple(position for position, point in enumerate(points) if point is not None)
    counted = present[-evaluation_periods:]
    filled = evaluation_periods - len(counted)
    breaching = sum(bool(points[position]) for position in counted)
    if breaching >= datapoints_to_alarm:
        return StateDecision(ALARM, counted, filled)
    if not filled or treatment == "notBreaching":
        return StateDecision(OK, counted, filled)
    if treatment == "breaching":
        return StateDecision(ALARM if breaching + filled >= datapoints_to_alarm else OK, counted, filled)
    if not counted:
        return StateDecision(INSUFFICIENT_DATA if treatment == "missing" else None, counted, filled)
    if breaching < len(counted):
        return StateDecision(OK, counted, filled)
    # Every data point breaches, and they are fewer than M. AWS raises the alarm if the oldest is as old as M
    # data points ("premature alarm state"). It does not say what happens before. Here, the state stays.
    is_old = len(points) - counted[0] >= datapoints_to_alarm
    return StateDecision(ALARM if is_old and treatment == "missing" else None, counted, filled)
