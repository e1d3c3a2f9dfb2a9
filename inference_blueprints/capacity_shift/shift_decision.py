"""How much real time needs, and how much batch may have."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.capacity_shift.demand_history import DemandHistory
from inference_blueprints.capacity_shift.shift_answer import ShiftDecision
from inference_blueprints.capacity_shift.shift_settings import ShiftSettings
from inference_blueprints.capacity_shift.shift_state import ShiftState
from inference_blueprints.capacity_shift.shift_view import CellView


def decide(
    histories: Mapping[str, DemandHistory],
    view: CellView,
    state: ShiftState | None,
    settings: ShiftSettings,
    now: float,
) -> ShiftDecision:
    """Return the floors of real time, and what batch may have.

    Parameters
    ----------
    histories
        Demand of each deployment by its name in the view. One that is missing counts as without metrics.
    view
        What runs now.
    state
        State of the last decision. None if there was none, or if it was lost.
    settings
        Section of the blueprint, freeze switch and limits.
    now
        Seconds since the epoch.
    """
    raise NotImplementedError
