"""Tables of how a fleet is split, for a terminal and a page."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.report.figures import CostItem
from inference_blueprints.report.fleet.fleet_split import AccountLimit, CellLimit, FleetSplit
from inference_blueprints.report.tables.text_table import TextTable
from inference_contracts.number_text import number

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
