"""Step scaling policies that set an exact capacity.

Source: API StepAdjustment and StepScalingPolicyConfiguration
(https://docs.aws.amazon.com/autoscaling/application/APIReference/API_StepAdjustment.html): bounds are
differences from the alarm's threshold; above the threshold the lower bound belongs to a step, below it the
upper one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Shape = Mapping[str, Any]


def check_steps(settings: Shape) -> None:
    """Check a ``StepScalingPolicyConfiguration``.

    Raises ValueError if it is of a type that the templates do not have.
    """
    if settings.get("AdjustmentType") != "ExactCapacity":
        raise ValueError(
            f"the stand-in has no AdjustmentType {settings.get('AdjustmentType')}: use ExactCapacity"
        )


def stepped_capacity(settings: Shape, breach: float) -> int | None:
    """Return the capacity of the step that a breach is in, None if it is in none.

    settings: ``StepScalingPolicyConfiguration``.
    breach: Value of the metric less the threshold of the alarm.
    """
    for step in settings["StepAdjustments"]:
        lower = float(step.get("MetricIntervalLowerBound", -math.inf))
        upper = float(step.get("MetricIntervalUpperBound", math.inf))
        if (lower <= breach < upper) if breach >= 0 else (lower < breach <= upper):
            return int(step["ScalingAdjustment"])
    return None
