"""The plan as rows of text, for the terminal and for the page: one wording for both."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections import SECTIONS
from inference_blueprints.report.plan.sections.pools import POOLS, PRICES, TOTALS
from inference_blueprints.report.plan.sections.tokens import EMBEDDING, unknown_speeds
from inference_blueprints.report.tables import TextTable, print_table


def plan_tables(summary: PlanSummary) -> list[TextTable]:
    """Return the tables that have rows, in reading order."""
    tables = (table(summary) for section in SECTIONS for table in section.tables)
    return [table for table in tables if table.rows]


def plan_notes(summary: PlanSummary) -> list[str]:
    """Return notes on the source of the prices, and on what the plan leaves out."""
    notes = [summary[PRICES].note]
    unpriced = sorted({*summary[TOTALS].without_used, *summary[TOTALS].without_max})
    if unpriced:
        notes.append(
            f"The price is unknown for {', '.join(unpriced)}. Sums with it say 'at most' or 'at least'. Pass "
            "your price with `--rates`."
        )
    purchases = {pool.purchase for pool in summary[POOLS]}
    if "spot" in purchases:
        notes.append("Spot prices change, and are at most the on-demand price. Pass yours with `--rates`.")
    if "reservation" in purchases:
        notes.append(
            "A reservation is billed at the on-demand rate for its size, whether its instances run or "
            "not. Its size is not in the blueprint."
        )
    if "capacityBlock" in purchases:
        notes.append("You pay for a Capacity Block in advance, at the price of its offer.")
    notes += [f"No token price for {names}: {reason}." for reason, names in unknown_speeds(summary)]
    if summary[EMBEDDING]:
        names = ", ".join(summary[EMBEDDING])
        notes.append(
            f"{names} computes embeddings or scores and writes no text, so there is no price of tokens and "
            "no measured speed: measure how many replicas the peak needs."
        )
    return [*notes, 'Prices per hour are those of the pools\' nodes. "Cost of a month" adds the other parts.']


def print_plan(summary: PlanSummary, console: Console) -> None:
    """Print all tables and notes of a plan; colours appear in a terminal only."""
    console.print(Text(f"{summary.name} in {summary.region}", style="bold"))
    console.print(Text(summary.support.line))
    for table in plan_tables(summary):
        print_table(table, console)
    console.print()
    for note in plan_notes(summary):
        console.print(Text(note))
