"""A table as data, for a terminal and an HTML page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text."""

    title: str
    names: tuple[str, ...]
    figures: tuple[str, ...]
    """`names`, `figures`: Headings of the columns with names, and of the columns with values. A heading
    includes its unit."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences that explain columns, shown below the table."""
