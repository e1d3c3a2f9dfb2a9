"""What `blueprints plan` tells: pools, processes, memory, price and limits, as data."""

from __future__ import annotations

from inference_blueprints.planning.types.costs import PriceNote, TokenPrice, Totals
from inference_blueprints.planning.types.limits import AddressUse, PoolAddresses, QuotaNeed
from inference_blueprints.planning.types.nodes import (
    ColdStart,
    MemorySummary,
    PodFit,
    PoolSummary,
    ProcessSummary,
)
from inference_blueprints.planning.types.summary import PlanSummary

__all__ = [
    "AddressUse",
    "ColdStart",
    "MemorySummary",
    "PlanSummary",
    "PodFit",
    "PoolAddresses",
    "PoolSummary",
    "PriceNote",
    "ProcessSummary",
    "QuotaNeed",
    "TokenPrice",
    "Totals",
]
