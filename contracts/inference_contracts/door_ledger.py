"""What the ledger of the front door and its checkpoints are made of: windows, keys and numbers.

Days and months of budgets are calendar days and months of the platform's time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

#: Numbers of a counter that a checkpoint has: first second of a day and what was spent in it, the same of the
#: last day before with spending, and the same of the month and of that before.
NUMBERS: Final = ("d", "D", "e", "E", "m", "M", "p", "P")

#: Counters are kept for their month and the next, whose first days may add to it.
CHECKPOINT_SECONDS_KEPT: Final = 70 * 86400


def team_tag(team: str) -> str:
    """Return what the keys of a team begin with. It is the key of the team's own counter too."""
    return f"door:{{{team}}}"


def model_tag(model: str) -> str:
    """Return what the keys of a model begin with. No team has a slash in its name."""
    return f"door:{{/{model}}}"


def team_of(tag: str) -> str | None:
    """Return the team whose keys begin so. None if they are those of a model."""
    name = tag.removeprefix("door:{").removesuffix("}")
    return None if name.startswith("/") else name


@dataclass(frozen=True, slots=True)
class Windows:
    """The day and the month of a time. Times are whole seconds since 1970."""

    day: int
    day_end: int
    month: int
    month_end: int
    """`day`, `day_end`, `month`, `month_end`: First second of each, and first second after it."""

    def contain(self, now: float) -> bool:
        """Return whether a time is in the day (and so in the month)."""
        return self.day <= now < self.day_end


def windows_at(now: float, zone: ZoneInfo) -> Windows:
    """Return the windows of a time.

    Days begin at midnight of the zone; one with a change of the clock has 23 or 25 hours.
    """
    local = datetime.fromtimestamp(now, zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    # Arithmetic of dates without hours: `+ 1 day` of a zoned time keeps the wall clock.
    tomorrow = (midnight + timedelta(days=1)).replace(fold=0)
    first = midnight.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return Windows(*(int(each.timestamp()) for each in (midnight, tomorrow, first, following)))
