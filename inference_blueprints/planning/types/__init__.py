"""What `blueprints plan` tells: pools, processes, memory, price and limits, as data."""

from __future__ import annotations

from inference_blueprints.planning.types.batch import BatchDaySummary
from inference_blueprints.planning.types.batch_workers import BatchWorkersSummary
from inference_blueprints.planning.types.costs import PriceNote, SignalStorePrice, TokenPrice, Totals
from inference_blueprints.planning.types.limits import AddressUse, PoolAddresses, QuotaNeed, ServiceQuotaUse
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
    "BatchDaySummary",
    "BatchWorkersSummary",
    "ColdStart",
    "MemorySummary",
    "PlanSummary",
    "PodFit",
    "PoolAddresses",
    "PoolSummary",
    "PriceNote",
    "ProcessSummary",
    "QuotaNeed",
    "ServiceQuotaUse",
    "SignalStorePrice",
    "TokenPrice",
    "Totals",
]
