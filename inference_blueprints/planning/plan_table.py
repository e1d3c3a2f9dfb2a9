"""A table of the plan, whatever shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanTable:
    """A table of the plan.

    Parameters
    ----------
    title
        What it shows.
    names, figures
        Heads of the columns with names, and of those with figures after them.
    rows
        Names, then figures.
    notes
        Sentences on what the columns mean.
    """

    title: str
    names: tuple[str, ...]
    figures: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
