"""Published times of the parts of a worker's start that do not follow from bytes and bandwidths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTimeFigure:
    """A published time.

    Parameters
    ----------
    name
        The part of the start.
    seconds
        The time.
    measured
        What was measured, and on what.
    date, source
        When and where it was published.
    """

    name: str
    seconds: float
    measured: str
    date: str
    source: str
