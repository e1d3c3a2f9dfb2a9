"""The sections of the plan. To add one, write its file in this folder and add its line here."""

from __future__ import annotations

from typing import Any

from inference_blueprints.report.plan.section import PlanSection
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.sections.batch import BATCH_DAYS, SERVICE_QUOTAS
from inference_blueprints.report.plan.sections.batch_workers import BATCH_WORKERS
from inference_blueprints.report.plan.sections.budgets import BUDGETS
from inference_blueprints.report.plan.sections.cold_starts import COLD_STARTS
from inference_blueprints.report.plan.sections.compilations import COMPILATIONS
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.edges import EDGES
from inference_blueprints.report.plan.sections.fits import FITS
from inference_blueprints.report.plan.sections.front_door import FRONT_DOOR
from inference_blueprints.report.plan.sections.frontends import FRONTENDS
from inference_blueprints.report.plan.sections.images import IMAGES
from inference_blueprints.report.plan.sections.kafka import KAFKA
from inference_blueprints.report.plan.sections.memory import MEMORY
from inference_blueprints.report.plan.sections.objectives import OBJECTIVES
from inference_blueprints.report.plan.sections.pools import POOLS, PRICES, TOTALS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.sections.public_names import PUBLIC_NAMES
from inference_blueprints.report.plan.sections.quotas import QUOTAS
from inference_blueprints.report.plan.sections.repairs import REPAIRS
from inference_blueprints.report.plan.sections.scaling import SCALING
from inference_blueprints.report.plan.sections.shared_pools import SHARED_POOLS
from inference_blueprints.report.plan.sections.shift import SHIFT
from inference_blueprints.report.plan.sections.signal_store import SIGNAL_STORE
from inference_blueprints.report.plan.sections.streaming import STREAMING
from inference_blueprints.report.plan.sections.tokens import (
    BEYOND_PROFILE,
    EMBEDDING,
    TOKEN_PRICES,
    WITHOUT_PROFILE,
)

#: In the order in which a plan shows their tables.
SECTIONS: tuple[PlanSection[Any], ...] = (
    POOLS,
    TOTALS,
    PRICES,
    PLATFORM_COST,
    BUDGETS,
    PROCESSES,
    PUBLIC_NAMES,
    SCALING,
    SHIFT,
    SHARED_POOLS,
    FRONT_DOOR,
    FRONTENDS,
    EDGES,
    MEMORY,
    FITS,
    TOKEN_PRICES,
    WITHOUT_PROFILE,
    BEYOND_PROFILE,
    EMBEDDING,
    IMAGES,
    OBJECTIVES,
    COLD_STARTS,
    COMPILATIONS,
    QUOTAS,
    BATCH_DAYS,
    SERVICE_QUOTAS,
    STREAMING,
    KAFKA,
    BATCH_WORKERS,
    SIGNAL_STORE,
    REPAIRS,
    ADDRESSES,
)
