"""A table in Markdown, for pages that scripts write."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.report.tables import TextTable


def markdown_table(table: TextTable) -> str:
    """Return a table in Markdown, with figures aligned to the right and without title and notes."""
    rules = ["---"] * len(table.names) + ["---:"] * len(table.figures)
    return "\n".join(_line(row) for row in ((*table.names, *table.figures), rules, *table.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
