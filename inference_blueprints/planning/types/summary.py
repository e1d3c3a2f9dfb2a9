"""All that `blueprints plan` tells, together."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.planning.types.costs import PriceNote, TokenPrice, Totals
from inference_blueprints.planning.types.limits import AddressUse, QuotaNeed
from inference_blueprints.planning.types.nodes import (
    ColdStart,
    MemorySummary,
    PodFit,
    PoolSummary,
    ProcessSummary,
)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """All that `blueprints plan` prints.

    Parameters
    ----------
    name, region
        Of the blueprint.
    pools, processes, memory
        In the blueprint's order.
    totals
        The pools together.
    prices
        Where the prices come from.
    token_prices
        Of the deployments with a latency profile.
    without_profile
        Deployments without one, as ``model/deployment``.
    quotas
        Ordered by code.
    cold_starts, fits
        Of each deployment.
    addresses
        The network's.
    """

    name: str
    region: str
    pools: tuple[PoolSummary, ...]
    processes: tuple[ProcessSummary, ...]
    memory: tuple[MemorySummary, ...]
    totals: Totals
    prices: PriceNote
    token_prices: tuple[TokenPrice, ...]
    without_profile: tuple[str, ...]
    quotas: tuple[QuotaNeed, ...]
    cold_starts: tuple[ColdStart, ...]
    addresses: AddressUse
    fits: tuple[PodFit, ...]
