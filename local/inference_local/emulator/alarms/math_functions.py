"""Functions of metric math on time series.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html#metric-math-syntax-functions-list
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

#: Start of a period in seconds since 1970 to the value of the period, in order.
Series: TypeAlias = "dict[float, float]"

#: Functions of each value.
EACH: Final[Mapping[str, Callable[[float], float]]] = {
    "ABS": abs,
    "CEIL": lambda value: float(math.ceil(value)),
    "FLOOR": lambda value: float(math.floor(value)),
    "LOG": math.log,
    "LOG10": math.log10,
    "negate": lambda value: -value,
}
#: Functions that make a number of one time series.
WHOLE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "AVG": lambda values: sum(values) / len(values) if values else 0.0,
    "DATAPOINT_COUNT": lambda values: float(len(values)),
    "MAX": lambda values: max(values, default=0.0),
    "MIN": lambda values: min(values, default=0.0),
    "STDDEV": lambda values: statistics.pstdev(values) if values else 0.0,
    "SUM": lambda values: float(sum(values)),
}
#: Functions of the start of a period. Monday is day 1.
TIMES: Final[Mapping[str, Callable[[float], float]]] = {
    "MINUTE": lambda start: float(_date(start).minute),
    "HOUR": lambda start: float(_date(start).hour),
    "DAY": lambda start: float(_date(start).isoweekday()),
    "DATE": lambda start: float(_date(start).day),
    "MONTH": lambda start: float(_date(start).month),
    "YEAR": lambda start: float(_date(start).year),
    "EPOCH": float,
}


def _date(start: float) -> datetime:
    return datetime.fromtimestamp(start, UTC)


def _at_each(compute: Callable[[Sequence[float]], float]) -> Callable[[Sequence[Series]], Series]:
    """Return a function that computes something of the values that an array has in each period."""

    def across(array: Sequence[Series]) -> Series:
        starts = sorted({start for series in array for start in series})
        return {start: compute([series[start] for series in array if start in series]) for start in starts}

    return across


def _average(array: Sequence[Series]) -> Series:
    """Average an array. Missing values count as 0."""
    return {start: value / len(array) for start, value in _at_each(sum)(array).items()}


#: Functions that make one time series of an array.
ACROSS: Final[Mapping[str, Callable[[Sequence[Series]], Series]]] = {
    "AVG": _average,
    "DATAPOINT_COUNT": _at_each(lambda values: float(len(values))),
    "MAX": _at_each(max),
    "MIN": _at_each(min),
    "STDDEV": _at_each(statistics.pstdev),
    "SUM": _at_each(lambda values: float(sum(values))),
}


def _steps(compute: Callable[[float, float], float]) -> Callable[[Series], Series]:
    """Return a function of the differences of value and time to the point before."""

    def along(series: Series) -> Series:
        return {
            start: compute(value - before, start - earlier)
            for (earlier, before), (start, value) in pairwise(series.items())
        }

    return along


def _each_value(function: Callable[[float], float]) -> Callable[[Series], Series]:
    """Return a function of a series that drops the points for which the given one has no value."""

    def along(series: Series) -> Series:
        found: Series = {}
        for start, value in series.items():
            with contextlib.suppress(ValueError):
                found[start] = function(value)
        return found

    return along


#: Functions that make a time series of a time series.
ALONG: Final[Mapping[str, Callable[[Series], Series]]] = {
    **{name: _each_value(function) for name, function in EACH.items()},
    "DIFF": _steps(lambda difference, _: difference),
    "DIFF_TIME": _steps(lambda _, seconds: seconds),
    "RATE": _steps(lambda difference, seconds: difference / seconds),
    "RUNNING_SUM": lambda series: dict(zip(series, accumulate(series.values()), strict=True)),
}


def filled_with(series: Series, filling: Series) -> Series:
    """Return a series whose missing points are those of another."""
    return dict(sorted({**filling, **series}.items()))


def filled_with_previous(series: Series, starts: Sequence[float]) -> Series:
    """Return a series whose missing points repeat the last value before them."""
    found: Series = {}
    last: float | None = None
    for start in starts:
        last = series.get(start, last)
        if last is not None:
            found[start] = last
    return found


def filled_linearly(series: Series, starts: Sequence[float]) -> Series:
    """Return a series whose gaps are straight lines between the values before and after them."""
    found = dict(series)
    for (start, value), (end, after) in pairwise(series.items()):
        for between in (each for each in starts if start < each < end):
            found[between] = value + (after - value) * (between - start) / (end - start)
    return dict(sorted(found.items()))
