"""Days and months of budgets: calendar days and months of the platform's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo


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
