"""Ways of serving that upstream projects do not call proven."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExperimentalWay:
    """A way of serving that may fail, although every part of it is supported."""

    name: str
    """The catalogue's name."""
    what: str
    """What is experimental, as the subject of a sentence."""
    reason: str
    """What is known to fail, or is not known to work."""
    remedy: str
    """What to use instead."""
    source: str
    """URL of the issue or release notes."""
    date: str
    """Date on which the source was read."""
