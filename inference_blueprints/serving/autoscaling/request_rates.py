"""Request rates of a service over days, in the format of ServeGen."""

from __future__ import annotations

import csv
import math
import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY, SECONDS_PER_DAY, SECONDS_PER_HOUR

#: Columns of ServeGen's files (github.com/alibaba/ServeGen): start of a window in seconds, requests per
#: second, coefficient of variation of the time between requests. What follows describes its distribution.
_COLUMNS = ("start_s", "req/s", "CV")
_FEWEST_COLUMNS = 2
_ALLOWED = f"write {', '.join(_COLUMNS)} as numbers, one window per line; {_COLUMNS[-1]} may be left out"
_FEWEST_WINDOWS = 2
#: Lines that one message names: a file of another kind has problems in all of its lines.
_SHOWN = 20
#: Poisson arrivals, for files without the column.
_POISSON = 1.0


@dataclass(frozen=True, slots=True)
class RateWindow:
    """A window of a file."""

    start_seconds: float
    """Its begin."""
    rate: float
    """Requests per second."""
    variation: float = _POISSON
    """Coefficient of variation of the time between two requests: 1 is Poisson, more is burstier."""


@dataclass(frozen=True, slots=True)
class RequestRates:
    """Rates in windows of equal length."""

    windows: tuple[RateWindow, ...]
    """The windows in the order of time, at least two."""

    @classmethod
    def read(cls, path: Path) -> RequestRates:
        """Read a CSV file with or without a line of titles.

        Raises UserError if the file cannot be read, a line has no start and rate, or the windows are not of
        equal length, with all lines.
        """
        try:
            with path.open(newline="", encoding="utf-8") as lines:
                return cls.of(csv.reader(lines), path.name)
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"{path}: is no CSV file in UTF-8 ({error}); {_ALLOWED}") from error

    @classmethod
    def of(cls, rows: Iterable[list[str]], name: str) -> RequestRates:
        """Read rows of such a file, whose name is for messages."""
        windows: list[RateWindow] = []
        problems: list[str] = []
        for number, row in enumerate(rows, 1):
            if not row or (number == 1 and _numbers(row[:1]) is None):
                continue
            numbers = _numbers(row[: len(_COLUMNS)])
            if numbers is None or len(numbers) < _FEWEST_COLUMNS:
                problems.append(f"{name}:{number}: got {','.join(row)[:80]!r}; {_ALLOWED}")
            elif not all(map(math.isfinite, numbers)) or min(numbers[1:]) < 0:
                problems.append(
                    f"{name}:{number}: got {','.join(row)[:80]!r}; allowed are finite numbers, and rate and "
                    "variation of 0 or more"
                )
            else:
                windows.append(RateWindow(*numbers))
        if not problems:
            problems = list(_problems_of_lengths(windows, name))
        if problems:
            more = [f"{name}: and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
            raise UserError("\n".join([*problems[:_SHOWN], *more]))
        return cls(tuple(windows))

    @property
    def window_seconds(self) -> float:
        """Length of a window."""
        return self.windows[1].start_seconds - self.windows[0].start_seconds

    @property
    def start_seconds(self) -> float:
        """Begin of the first window."""
        return self.windows[0].start_seconds

    @property
    def end_seconds(self) -> float:
        """End of the last window."""
        return self.windows[-1].start_seconds + self.window_seconds

    @property
    def peak(self) -> float:
        """The highest rate of a window, in requests per second."""
        return max(window.rate for window in self.windows)

    def between(self, start_seconds: float, end_seconds: float) -> RequestRates:
        """Return the windows that start within a time."""
        return RequestRates(
            tuple(each for each in self.windows if start_seconds <= each.start_seconds < end_seconds)
        )

    def scaled(self, factor: float) -> RequestRates:
        """Return the rates times a factor."""
        return RequestRates(tuple(replace(each, rate=each.rate * factor) for each in self.windows))

    def window_at(self, seconds: float) -> RateWindow:
        """Return the window of a time. Before the first and after the last, these go on."""
        index = bisect_right(self.windows, seconds, key=lambda each: each.start_seconds) - 1
        return self.windows[max(0, index)]

    def rate_at(self, seconds: float) -> float:
        """Return the rate of a time: between the middles of two windows, it changes evenly."""
        half = self.window_seconds / 2.0
        before, after = self.window_at(seconds - half), self.window_at(seconds + half)
        share = (seconds - half - before.start_seconds) / self.window_seconds
        return before.rate + (after.rate - before.rate) * min(1.0, max(0.0, share))

    def by_hour(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return mean and highest rate of each hour of a day in UTC, over all days of the file.

        Starts of windows count from a midnight in UTC. A window has its rate from begin to end.

        Raises UserError if the windows are shorter than a day together, or the file has no requests.
        """
        length = self.end_seconds - self.start_seconds
        if length < SECONDS_PER_DAY:
            raise UserError(
                f"got rates of {length / SECONDS_PER_HOUR:g} h, at least a day of 24 h is needed; windows "
                "start at seconds"
            )
        if not self.peak:
            raise UserError("all rates are 0; give rates with requests")
        requests, seconds, peaks = ([0.0] * HOURS_PER_DAY for _ in range(3))
        for window in self.windows:
            begin, end = window.start_seconds, window.start_seconds + self.window_seconds
            hour = math.floor(begin / SECONDS_PER_HOUR)
            while hour * SECONDS_PER_HOUR < end:
                within = min(end, (hour + 1) * SECONDS_PER_HOUR) - max(begin, hour * SECONDS_PER_HOUR)
                of_day = hour % HOURS_PER_DAY
                requests[of_day] += window.rate * within
                seconds[of_day] += within
                if within > 0.0:
                    peaks[of_day] = max(peaks[of_day], window.rate)
                hour += 1
        means = tuple(asked / lasting for asked, lasting in zip(requests, seconds, strict=True))
        return means, tuple(peaks)

    def max_between(self, start_seconds: float, end_seconds: float) -> float:
        """Return the highest rate within a time."""
        half = self.window_seconds / 2.0
        first, last = (
            bisect_right(self.windows, seconds - half, key=lambda each: each.start_seconds)
            for seconds in (start_seconds, end_seconds)
        )
        middles = [each.rate for each in self.windows[first:last]]
        return max(self.rate_at(start_seconds), self.rate_at(end_seconds), *middles)


def _numbers(fields: Iterable[str]) -> list[float] | None:
    try:
        return [float(field) for field in fields]
    except ValueError:
        return None


def _problems_of_lengths(windows: Sequence[RateWindow], name: str) -> Iterator[str]:
    """Yield why windows are not of one length, with the start of each other one."""
    if len(windows) < _FEWEST_WINDOWS:
        yield f"{name}: got {len(windows)} windows; at least {_FEWEST_WINDOWS} are needed"
        return
    length = windows[1].start_seconds - windows[0].start_seconds
    if length <= 0:
        yield f"{name}: got a second window that starts {length:g} s after the first; it must start later"
        return
    for before, after in pairwise(windows):
        got = after.start_seconds - before.start_seconds
        if not math.isclose(got, length):
            yield (
                f"{name}: the window at {after.start_seconds:.10g} s starts {got:.10g} s after the one "
                f"before; the first has {length:.10g} s, and all must have the same length"
            )


_MINUTE = 60.0


def demand_per_minute(rates: RequestRates, seed: int, *, steps: bool = False) -> list[float]:
    """Return requests per second in each minute, by chance around the rates.

    The variance of the number of requests is the square of the coefficient of variation of the time between
    requests times its mean, as in a renewal process over a long time.

    seed: Of the random numbers.
    steps: Whether a rate holds for its whole window. Otherwise it changes evenly between two windows.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    found = []
    for minute in range(round((rates.end_seconds - rates.start_seconds) / _MINUTE)):
        seconds = rates.start_seconds + (minute + 0.5) * _MINUTE
        window = rates.window_at(seconds)
        mean = (window.rate if steps else rates.rate_at(seconds)) * _MINUTE
        found.append(max(0.0, chance.gauss(mean, window.variation * math.sqrt(mean))) / _MINUTE)
    return found
