"""A table as data, for a terminal, an HTML page and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text.

    Parameters
    ----------
    title
        Title of the table.
    names, figures
        Headings of the columns with names, and of the columns with values. A heading includes its unit.
    notes
        Sentences that explain columns, shown below the table.
    """

    title: str
    names: tuple[str, ...]
    figures: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def markdown_table(table: TextTable) -> str:
    """Return a table in Markdown, with figures aligned to the right and without title and notes.

    Parameters
    ----------
    table
        The table.
    """
    rules = ["---"] * len(table.names) + ["---:"] * len(table.figures)
    return "\n".join(_line(row) for row in ((*table.names, *table.figures), rules, *table.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
