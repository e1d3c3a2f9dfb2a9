"""Write three tables of the plan of quickstart-g6e into README.md, as `blueprints plan` prints them.

``make generate`` runs this script.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.report.tables.terminal_table import print_table
from inference_blueprints.serving.plan import build_plan

PAGE: Final = Path(__file__).resolve().parent.parent / "README.md"
_BLUEPRINT: Final = "quickstart-g6e"
_TITLES: Final = ("Pools", "Processes", "Price of tokens (simulated)")
_COLUMNS: Final = 80


def page_text(page: str) -> str:
    """Return the page with the tables of the plan."""
    blueprint = load_blueprint(_BLUEPRINT).blueprint
    tables = {table.title: table for table in plan_tables(summarise(blueprint, build_plan(blueprint)))}
    printed = io.StringIO()
    console = Console(file=printed, width=_COLUMNS)
    for title in _TITLES:
        print_table(tables[title], console)
    lines = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
    return fill_section(page, "plan", f"```text\n{lines}\n```")


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
