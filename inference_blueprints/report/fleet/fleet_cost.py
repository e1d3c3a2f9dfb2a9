"""What a fleet costs in a month of 730 hours, by list prices."""

from __future__ import annotations

import math
from collections.abc import Iterator

from inference_blueprints.report.figures import CostItem
from inference_blueprints.report.fleet.fleet_split import FleetSplit
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_contracts.health_names import WORKER_SERIES
from inference_contracts.operations_names import NAMES_PER_QUERY
from inference_contracts.units import MINUTES_PER_MONTH

_OF_POOLS = ("pool ", "EBS volumes of pool ")


def fleet_cost(split: FleetSplit, summary: PlanSummary) -> tuple[CostItem, ...]:
    """Return the parts of a fleet's cost. Parts whose price is not known have none.

    split: How the fleet is split.
    summary: The blueprint's plan, with its prices.
    """
    return (*_nodes(split, summary), *_cells(split, summary), *_signals(split))


def _nodes(split: FleetSplit, summary: PlanSummary) -> Iterator[CostItem]:
    total = sum(pool.nodes_max for pool in summary[POOLS])
    priced = {item.name: item for item in summary[PLATFORM_COST].items}
    for pool in summary[POOLS]:
        nodes = split.nodes * pool.nodes_max / total
        hourly = None if pool.usd_per_hour_max is None else pool.usd_per_hour_max / pool.nodes_max
        usd = None if hourly is None else nodes * hourly * summary[PLATFORM_COST].hours
        kinds = " or ".join(pool.instance_types)
        yield CostItem(f"nodes of pool {pool.name}", f"{nodes:,.0f} x {kinds}, {pool.purchase}", usd)
        volumes = priced[f"EBS volumes of pool {pool.name}"]
        known = volumes.usd_per_month is not None and pool.nodes_used
        each = (volumes.usd_per_month or 0.0) / pool.nodes_used if known else None
        yield CostItem(
            f"EBS volumes of pool {pool.name}", f"{nodes:,.0f} nodes", None if each is None else each * nodes
        )


def _cells(split: FleetSplit, summary: PlanSummary) -> Iterator[CostItem]:
    for item in summary[PLATFORM_COST].items:
        if not item.name.startswith(_OF_POOLS):
            usd = None if item.usd_per_month is None else item.usd_per_month * split.cells
            yield CostItem(
                item.name, f"in each of {split.cells} cells: {item.assumption}", usd, item.is_bound
            )


def _signals(split: FleetSplit) -> Iterator[CostItem]:
    """Yield what GPU health reads. CloudWatch bills it at a price that no document names that was read."""
    series = len(WORKER_SERIES) * math.ceil(split.use.workers)
    points = series * MINUTES_PER_MONTH / 1e6
    workers, nodes = (
        math.ceil(each / NAMES_PER_QUERY / split.cells) for each in (split.use.workers, split.use.nodes)
    )
    queries = (len(WORKER_SERIES) * workers + nodes) * split.cells
    yield CostItem(
        "series of workers for GPU health",
        f"{series:,} series, {points:,.0f} million data points; the price of a GB of metrics is not known",
        None,
    )
    yield CostItem(
        "queries of GPU health",
        f"at least {queries:,} each minute, {queries * MINUTES_PER_MONTH / 1e6:,.1f} million in a month; "
        "no price known",
        None,
    )
