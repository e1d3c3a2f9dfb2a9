"""A table as data, for a terminal, a page and Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text.

    Parameters
    ----------
    title
        Title, which each place shows in its own way.
    names, figures
        Headings: first of the columns with names, then of those with values. A heading carries its unit.
    notes
        Sentences that explain columns, shown below the table.
    """

    title: str
    names: tuple[str, ...]
    figures: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
