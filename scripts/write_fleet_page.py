"""Write the tables of docs/fleet.md on fleets of 10,000 and 100,000 GPUs.

The tables are between ``<!-- fleet GPUS -->`` and ``<!-- end of fleet GPUS -->``. They contain what
`blueprints plan --fleet GPUS` shows. ``make generate`` runs this script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from generated_files import rewrite

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.fleet.fleet_cost import fleet_cost, fleet_sentence, fleet_tables
from inference_blueprints.report.fleet.fleet_split import AccountLimit, CellLimit, fleet_split
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.plan import build_plan

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "fleet.md"
#: Eight H200 per node.
BLUEPRINT: Final = "p5en-cluster"
_SOURCES: Final = "<!-- sources -->\n{}\n<!-- end of sources -->"
_PLACE: Final = re.compile(r"<!-- fleet (\d+) -->\n.*?<!-- end of fleet \1 -->", re.DOTALL)
_SOURCES_PLACE: Final = re.compile(r"<!-- sources -->\n.*?<!-- end of sources -->", re.DOTALL)


def page_text(page: str) -> str:
    """Return the page with new tables."""
    blueprint = load_blueprint(BLUEPRINT).blueprint
    summary = summarise(blueprint, build_plan(blueprint), None)

    def fleet(gpus: int) -> str:
        split = fleet_split(blueprint.spec, summary, gpus)
        tables = fleet_tables(split, fleet_cost(split, summary))
        return "\n\n".join((fleet_sentence(split), *("\n".join(_table(each)) for each in tables)))

    def sources() -> str:
        split = fleet_split(blueprint.spec, summary, 1)
        limits: list[CellLimit | AccountLimit] = [*split.cell_limits, *split.account_limits]
        return "\n".join(f"- {each.limit}:\n  <{each.source}>" for each in limits)

    page = _PLACE.sub(
        lambda found: (
            f"<!-- fleet {found[1]} -->\n\n{fleet(int(found[1]))}\n\n<!-- end of fleet {found[1]} -->"
        ),
        page,
    )
    return _SOURCES_PLACE.sub(lambda _: _SOURCES.format(f"\n{sources()}\n"), page)


def _table(table: TextTable) -> Iterator[str]:
    """Yield the lines of a table. A long assumption is left to the command."""
    columns = [
        index
        for index, name in enumerate((*table.names, *table.figures))
        if name not in ("assumption", "code")
    ]
    headings = (*table.names, *table.figures)
    yield f"**{table.title}**"
    yield ""
    yield _line([headings[index] for index in columns])
    yield _line(["---" if index < len(table.names) else "---:" for index in columns])
    for row in table.rows:
        yield _line([row[index] for index in columns])
    for note in table.notes:
        yield ""
        yield note


def _line(cells: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
