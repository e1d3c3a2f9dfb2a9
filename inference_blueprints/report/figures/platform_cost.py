"""Cost of a platform in a month."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostItem:
    """One part of a platform's cost.

    Parameters
    ----------
    name
        The part, such as ``NAT gateways``.
    assumption
        What is counted.
    usd_per_month
        US dollars per month; None if it depends on use or no price is known.
    is_bound
        Whether it is the most that the part can cost, because its real price is unknown.
    """

    name: str
    assumption: str
    usd_per_month: float | None
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class PlatformCost:
    """Cost of a platform in a month of 730 hours, with the nodes that its workers use.

    Parameters
    ----------
    hours
        Hours of a month.
    region, date, source
        Origin of the prices of services.
    blueprint_region
        Region of the platform.
    items
        The parts, the pools first.
    usd_per_month
        Sum of the parts that have a price.
    not_priced
        Names of the other parts.
    """

    hours: int
    region: str
    date: str
    source: str
    blueprint_region: str
    items: tuple[CostItem, ...]
    usd_per_month: float
    not_priced: tuple[str, ...]
