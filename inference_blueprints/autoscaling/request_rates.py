"""Request rates of a service over days, in the format of ServeGen."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from inference_blueprints.errors import UserError

#: Columns of ServeGen's files (github.com/alibaba/ServeGen): start of a window in seconds, requests per
#: second, coefficient of variation of the time between requests. What follows describes its distribution.
_COLUMNS = ("start_s", "req/s", "CV")
_FEWEST_COLUMNS = 2
#: Poisson arrivals, for files without the column.
_POISSON = 1.0


@dataclass(frozen=True, slots=True)
class RateWindow:
    """A window of a file.

    Parameters
    ----------
    start_seconds
        Its begin.
    rate
        Requests per second.
    variation
        Coefficient of variation of the time between two requests: 1 is Poisson, more is burstier.
    """

    start_seconds: float
    rate: float
    variation: float = _POISSON


@dataclass(frozen=True, slots=True)
class RequestRates:
    """Rates in windows of equal length.

    Parameters
    ----------
    windows
        The windows in the order of time, at least two.
    """

    windows: tuple[RateWindow, ...]

    @classmethod
    def read(cls, path: Path) -> RequestRates:
        """Read a CSV file with or without a line of titles.

        Raises
        ------
        UserError
            If a line has no start and rate, or the windows are not of equal length, with all lines.
        """
        with path.open(newline="", encoding="utf-8") as lines:
            return cls.of(csv.reader(lines), path.name)

    @classmethod
    def of(cls, rows: Iterable[list[str]], name: str) -> RequestRates:
        """Read rows of such a file, whose name is for messages."""
        windows: list[RateWindow] = []
        problems: list[str] = []
        for number, row in enumerate(rows, 1):
            try:
                start, rate = float(row[0]), float(row[1])
                variation = float(row[2]) if len(row) > _FEWEST_COLUMNS else _POISSON
            except (ValueError, IndexError):
                if number > 1:
                    problems.append(f"{name}:{number}: {row}: write {', '.join(_COLUMNS)} as numbers")
                continue
            if rate < 0 or variation < 0:
                problems.append(f"{name}:{number}: {row}: rate and variation must not be negative")
            windows.append(RateWindow(start, rate, variation))
        lengths = {after.start_seconds - before.start_seconds for before, after in pairwise(windows)}
        if len(lengths) != 1 or min(lengths) <= 0:
            problems.append(
                f"{name}: windows start at {sorted(lengths)} s from each other; one length is allowed"
            )
        if problems:
            raise UserError("\n".join(problems))
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

    def most_between(self, start_seconds: float, end_seconds: float) -> float:
        """Return the highest rate within a time."""
        half = self.window_seconds / 2.0
        first, last = (
            bisect_right(self.windows, seconds - half, key=lambda each: each.start_seconds)
            for seconds in (start_seconds, end_seconds)
        )
        middles = [each.rate for each in self.windows[first:last]]
        return max(self.rate_at(start_seconds), self.rate_at(end_seconds), *middles)
