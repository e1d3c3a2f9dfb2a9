"""Cron expressions of five fields, as KEDA's cron scaler reads them.

Source: KEDA v2.20.2, ``pkg/scalers/cron_scaler.go``, and its parser, github.com/robfig/cron/v3 v3.0.1,
``parser.go`` and ``spec.go``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from inference_contracts.records import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Name, first and last number, and names of numbers of each field.
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _WEEKDAYS),
)
_PART = re.compile(r"(\*|\?|\w+)(?:-(\w+))?(?:/(\d+))?")
#: As robfig/cron: an expression without a time within five years, such as 30 February, never comes.
_LONGEST_SEARCH_DAYS = 5 * 366


class CronError(ValueError):
    """An expression or time zone that KEDA does not read either."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A cron expression in a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    zone: ZoneInfo

    @classmethod
    def read(cls, expression: str, time_zone: str) -> CronSchedule:
        """Read an expression.

        expression: Minute, hour, day of month, month and day of week (0 or SUN is Sunday).
        time_zone: Such as ``Europe/Berlin``.
        Raises CronError if a field is missing or not a number, range, list or step of its unit, or the zone
            is unknown.
        """
        fields = expression.split()
        if len(fields) != len(_FIELDS):
            raise CronError(
                f"{expression!r} has {len(fields)} fields; write five: minute hour day month weekday"
            )
        try:
            zone = ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise CronError(f"{time_zone!r} is not a time zone; write one such as Europe/Berlin") from None
        numbers = [_numbers(text, *field) for text, field in zip(fields, _FIELDS, strict=True)]
        # Either day field that begins with a star leaves the choice to the other (robfig, `dayMatches`).
        any_day = any(fields[index].startswith(("*", "?")) for index in (2, 4))
        minutes, hours, days, months, weekdays = numbers
        schedule = cls(minutes, hours, days, months, weekdays, any_day, zone)
        try:
            schedule.next_after(0)
        except CronError:
            raise CronError(f"{expression!r} names a day that no year has") from None
        return schedule

    def next_after(self, seconds: float) -> float:
        """Return the first time after a time, both in seconds since 1970.

        Times that the clock skips in spring do not come, and those that it repeats in autumn come twice.
        """
        begin = datetime.fromtimestamp(seconds, self.zone)
        for offset in range(_LONGEST_SEARCH_DAYS):
            day = begin.date() + timedelta(days=offset)
            if day.month not in self.months or not self._has_day(day.day, day.isoweekday() % 7):
                continue
            times = (
                datetime(day.year, day.month, day.day, hour, minute, tzinfo=self.zone, fold=fold)
                for hour in self.hours
                for minute in self.minutes
                for fold in (0, 1)
            )
            found = [time.timestamp() for time in times if time.timestamp() > seconds and _exists(time)]
            if found:
                return min(found)
        raise CronError("the schedule has no time within five years")

    def _has_day(self, day: int, weekday: int) -> bool:
        matches = (day in self.days, weekday in self.weekdays)
        return all(matches) if self.any_day else any(matches)


def _exists(time: datetime) -> bool:
    back = time.astimezone(UTC).astimezone(time.tzinfo)
    return (back.hour, back.minute) == (time.hour, time.minute)


def _numbers(text: str, name: str, first: int, last: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise CronError(f"{part!r} is not a {name}; write a number, a range, a list or a step")
        begin, end, step = match.groups()
        if begin in ("*", "?"):
            low, high = first, last
        else:
            low = _number(begin, name, first, last, names)
            # N/step means N to the largest number (robfig, `getRange`).
            high = _number(end, name, first, last, names) if end else (last if step else low)
        if high < low or step == "0":
            raise CronError(f"{part!r} is an empty range of the {name}")
        found.update(range(low, high + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str, name: str, first: int, last: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + first
    if not text.isdigit() or not first <= int(text) <= last:
        raise CronError(f"{text!r} is not a {name}; allowed are {first} to {last}")
    return int(text)


class CronWindow:
    """The time from a start to the next end, as KEDA's cron scaler finds it.

    start, end: The two schedules.
    """

    def __init__(self, start: CronSchedule, end: CronSchedule) -> None:
        self._schedules = (start, end)
        self._known_from = self._next_start = self._next_end = 0.0

    def is_open(self, seconds: float) -> bool:
        """Return whether the window is open at a time, in seconds since 1970.

        KEDA looks only forward: the window is open if the next end comes before the next start, or with it
        (``GetMetricsAndActivity``).
        """
        if not self._known_from <= seconds < min(self._next_start, self._next_end):
            self._known_from = seconds
            self._next_start, self._next_end = (each.next_after(seconds) for each in self._schedules)
        return self._next_end <= self._next_start
