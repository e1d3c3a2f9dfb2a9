"""Ways of serving that upstream projects do not call proven."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExperimentalWay:
    """A way of serving that may fail, although every part of it is supported.

    Parameters
    ----------
    name
        The catalogue's name.
    what
        What is experimental, as the subject of a sentence.
    reason
        What is known to fail, or is not known to work.
    remedy
        What to use instead.
    source
        URL of the issue or release notes.
    date
        Date on which the source was read.
    """

    name: str
    what: str
    reason: str
    remedy: str
    source: str
    date: str
