"""What a fleet costs in a month of 730 hours, and the tables of how it is split."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inference_blueprints.report.figures import CostItem
from inference_blueprints.report.fleet.fleet_split import AccountLimit, CellLimit, FleetSplit
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.tables import TextTable
from inference_contracts.health_names import WORKER_SERIES
from inference_contracts.number_text import number
from inference_contracts.operations_names import NAMES_PER_QUERY
from inference_contracts.units import MINUTES_PER_MONTH

# Tables of how a fleet is split, for a terminal and a page.

_UNKNOWN = "unknown"
#: A limit that allows this many nodes or cells plays no part.
_NO_LIMIT = 1_000_000


def fleet_sentence(split: FleetSplit) -> str:
    """Return the split in a sentence.

    split: How the fleet is split.
    """
    pairs = "account and region" if split.accounts == 1 else "pairs of an account and a region"
    return (
        f"{split.gpus:,} GPUs on {split.nodes:,} nodes: {split.cells} "
        f"{'cell' if split.cells == 1 else 'cells'} of up to {split.nodes_per_cell:,} nodes "
        f"({split.gpus_per_cell:,} GPUs), in {split.accounts} {pairs} with up to "
        f"{split.cells_per_account} {'cell' if split.cells_per_account == 1 else 'cells'}."
    )


def fleet_tables(split: FleetSplit, cost: Sequence[CostItem]) -> tuple[TextTable, ...]:
    """Return the tables: limits of a cell, limits of an account, and the cost.

    cost: Parts of its cost.
    """
    known = sum(item.usd_per_month or 0.0 for item in cost)
    return (
        TextTable(
            "Limits of a cell (one cluster in its own VPC)",
            ("limit",),
            ("value", "use per node", "nodes per cell", "GPUs per cell", "decides"),
            tuple(_cell_row(each, split) for each in split.cell_limits),
            ("`raised` values are above an account's default and have to be asked for.",),
        ),
        TextTable(
            "Limits of an account in a region",
            ("limit", "code"),
            ("used by one account", "default", "cells per account", "to do"),
            tuple(_account_row(each, split) for each in split.account_limits),
        ),
        TextTable(
            "Cost of a month",
            ("part", "assumption"),
            ("USD",),
            (
                *((item.name, item.assumption, _usd(item)) for item in cost),
                ("sum of what is known", "", f"{known:,.0f}"),
            ),
            ("List prices. What is unknown is not in the sum.",),
        ),
    )


def _cell_row(limit: CellLimit, split: FleetSplit) -> tuple[str, ...]:
    raised = " (raised)" if limit.is_raised else ""
    counts = limit.nodes < _NO_LIMIT
    return (
        limit.limit,
        f"{limit.value:,.0f} {limit.unit}{raised}",
        number(limit.per_node),
        f"{limit.nodes:,}" if counts else "any",
        f"{limit.gpus:,}" if counts else "any",
        "yes" if limit.name == split.decides_cell else "",
    )


def _account_row(limit: AccountLimit, split: FleetSplit) -> tuple[str, ...]:
    if limit.name == split.decides_account:
        to_do = "decides"
    elif not limit.is_exceeded:
        to_do = "fits"
    else:
        to_do = f"ask for {-(-limit.used // 1):,.0f}"
    fits = "" if limit.cells is None else "any" if limit.cells >= _NO_LIMIT else f"{limit.cells:,}"
    value = _UNKNOWN if limit.value is None else f"{limit.value:,.0f} {limit.unit}"
    return (
        limit.limit,
        limit.code or "",
        number(limit.used, 4) if limit.used < 1 else f"{limit.used:,.0f}",
        value,
        fits,
        to_do,
    )


def _usd(item: CostItem) -> str:
    if item.usd_per_month is None:
        return _UNKNOWN
    return f"{'at most ' if item.is_bound else ''}{item.usd_per_month:,.0f}"


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
