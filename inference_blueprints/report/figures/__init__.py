"""The results of `blueprints plan` as data: pools, processes, memory, prices and limits."""

from __future__ import annotations

from inference_blueprints.report.figures.batch_day_summary import BatchDaySummary
from inference_blueprints.report.figures.batch_worker_summary import BatchWorkersSummary
from inference_blueprints.report.figures.edge_summary import EdgeSummary
from inference_blueprints.report.figures.frontend_summary import FrontendSummary
from inference_blueprints.report.figures.node_figures import (
    ColdStart,
    MemorySummary,
    PodFit,
    PoolSummary,
    ProcessSummary,
)
from inference_blueprints.report.figures.objective_check import ObjectiveCheck
from inference_blueprints.report.figures.plan_summary import PlanSummary
from inference_blueprints.report.figures.platform_cost import CostItem, PlatformCost
from inference_blueprints.report.figures.prices import PriceNote, SignalStorePrice, TokenPrice, Totals
from inference_blueprints.report.figures.quota_use import (
    AddressUse,
    PoolAddresses,
    QuotaNeed,
    ServiceQuotaUse,
)
from inference_blueprints.report.figures.repair_summary import RepairSummary
from inference_blueprints.report.figures.scaling_summary import FloorSummary, ScalingSummary, TriggerSummary
from inference_blueprints.report.figures.shift_summary import ShiftSummary
from inference_blueprints.report.figures.streaming_summary import KafkaSummary, StreamingSummary

__all__ = [
    "AddressUse",
    "BatchDaySummary",
    "BatchWorkersSummary",
    "ColdStart",
    "CostItem",
    "EdgeSummary",
    "FloorSummary",
    "FrontendSummary",
    "KafkaSummary",
    "MemorySummary",
    "ObjectiveCheck",
    "PlanSummary",
    "PlatformCost",
    "PodFit",
    "PoolAddresses",
    "PoolSummary",
    "PriceNote",
    "ProcessSummary",
    "QuotaNeed",
    "RepairSummary",
    "ScalingSummary",
    "ServiceQuotaUse",
    "ShiftSummary",
    "SignalStorePrice",
    "StreamingSummary",
    "TokenPrice",
    "Totals",
    "TriggerSummary",
]
