"""Capacity shift: batch gets the capacity that real-time requests do not need at this time of day."""

from pydantic import Field

from inference_blueprints.spec.section import Section
from inference_contracts.shift_names import DEFAULT_SAFETY_PERCENT, ShiftAction


class CapacityShift(Section):
    """Forecasts real-time demand each minute, and lends batch the capacity that is left."""

    action: ShiftAction = "observe"
    """`observe` only records decisions; `shift` also carries them out."""
    safety_percent: int = Field(default=DEFAULT_SAFETY_PERCENT, ge=0, le=200)
    """Margin above the upper end of the forecast, in percent."""
    reclaim_seconds: int = Field(default=600, ge=10, le=7200)
    """Time within which lent capacity is back, in seconds. It must not be below a worker's start."""
