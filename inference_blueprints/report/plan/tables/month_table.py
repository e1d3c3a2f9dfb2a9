"""Cost of a month in the plan's tables."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import CostItem, PlanSummary, PlatformCost
from inference_blueprints.report.plan.tables.cells import usd
from inference_blueprints.report.tables.text_table import TextTable

_NOT_PRICED = "not priced"


def month(summary: PlanSummary) -> TextTable:
    """Return the table of a month's cost."""
    cost = summary.platform_cost
    amount = usd(cost.usd_per_month)
    if any(item.is_bound for item in cost.items):
        amount = f"at most {amount}"
    total = ("total of the priced parts", "", amount)
    return TextTable(
        "Cost of a month",
        ("part", "assumption"),
        ("USD per month",),
        (*map(_row, cost.items), total),
        tuple(_notes(cost)),
    )


def _row(item: CostItem) -> tuple[str, ...]:
    price = _NOT_PRICED if item.usd_per_month is None else usd(item.usd_per_month)
    return (item.name, item.assumption, price)


def _notes(cost: PlatformCost) -> Iterator[str]:
    yield f"A month has {cost.hours} hours. Parts that are not priced depend on use, or have no known price."
    bounds = [item.name for item in cost.items if item.is_bound]
    if bounds:
        yield f"Counted at the most that they can cost: {', '.join(bounds)}."
    where = f"Prices of services are those of {cost.region}, {cost.date}, from AWS's price list."
    if cost.region == cost.blueprint_region:
        yield where
    else:
        yield f"{where} The blueprint deploys to {cost.blueprint_region}, where prices may differ."
