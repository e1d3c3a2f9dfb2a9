"""Published times of the parts of a worker's start that do not follow from bytes and bandwidths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTimeFigure:
    """A published time."""

    name: str
    """The part of the start."""
    seconds: float
    """The time."""
    measured: str
    """What was measured, and on what."""
    date: str
    source: str
    """`date`, `source`: When and where it was published."""
