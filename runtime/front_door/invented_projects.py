"""Bounds the names of projects that callers invent: each has a counter in the store, and in its checkpoint.

They are counted by each replica and for a day, so a restart counts anew: what is bounded is the memory of the
store, and no money. Names with a budget of their own, and those of keys, are the platform's and not counted.
"""

from __future__ import annotations

import collections
from typing import Final

#: Names that the callers of a team, and one of them alone, may begin with on a day at one replica: one key
#: cannot take all of its team.
MOST_OF_TEAM: Final = 1000
MOST_OF_CALLER: Final = 250


class InventedProjects:
    """The names of today."""

    def __init__(self) -> None:
        self._day = 0
        self._names: dict[str, set[str]] = {}
        self._begun: collections.Counter[tuple[str, str]] = collections.Counter()

    def most(self, team: str, caller: str, project: str, day: int) -> int | None:
        """Note a name, and return None. If it is one too many, return how many there may be.

        caller: What the caller is known by.
        day: First second of the day.
        """
        if day != self._day:
            self._day = day
            self._names.clear()
            self._begun.clear()
        names = self._names.setdefault(team, set())
        if project in names:
            return None
        if self._begun[team, caller] >= MOST_OF_CALLER:
            return MOST_OF_CALLER
        if len(names) >= MOST_OF_TEAM:
            return MOST_OF_TEAM
        names.add(project)
        self._begun[team, caller] += 1
        return None
