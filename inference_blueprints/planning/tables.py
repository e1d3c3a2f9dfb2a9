"""The plan as tables in a terminal; plain text where the output is not one."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inference_blueprints.planning.plan_table import PlanTable
from inference_blueprints.planning.rows import plan_notes, plan_tables
from inference_blueprints.planning.types import PlanSummary


def print_plan(summary: PlanSummary, console: Console) -> None:
    """Print a summary.

    Parameters
    ----------
    summary
        What `summarise` returned.
    console
        Where to; names fold at its width, figures never do, and colours appear only in a terminal.
    """
    console.print(Text(f"{summary.name} in {summary.region}", style="bold"))
    for table in plan_tables(summary):
        console.print(terminal_table(table))
        for note in table.notes:
            console.print(Text(note))
    console.print()
    for note in plan_notes(summary):
        console.print(Text(note))


def terminal_table(content: PlanTable) -> Table:
    """Lay rows out under two kinds of columns: names fold, figures are right-aligned and stay whole.

    Parameters
    ----------
    content
        Heads and rows.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in content.names:
        table.add_column(name, overflow="fold")
    for figure in content.figures:
        table.add_column(figure, justify="right", no_wrap=True)
    for row in content.rows:
        table.add_row(*map(Text, row))
    return table
