"""Prints a plan in a terminal, or as plain text where the output is not one."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from inference_blueprints.report.figures import PlanSummary
from inference_blueprints.report.plan.tables.plan_tables import plan_notes, plan_tables
from inference_blueprints.report.tables.terminal_table import print_table


def print_plan(summary: PlanSummary, console: Console) -> None:
    """Print all tables and notes of a plan; colours appear in a terminal only."""
    console.print(Text(f"{summary.name} in {summary.region}", style="bold"))
    console.print(Text(summary.support.line))
    for table in plan_tables(summary):
        print_table(table, console)
    console.print()
    for note in plan_notes(summary):
        console.print(Text(note))
