"""Two days of demand that end now, for decisions of the capacity shift."""

from __future__ import annotations

import numpy

from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory

DAY = 86400 // BIN_SECONDS
NOW = 100 * 86400


def flat(demand: float, bins: int = 2 * DAY) -> DemandHistory:
    """Return the same demand in each bin until now."""
    return DemandHistory(NOW, numpy.full(bins, demand))
