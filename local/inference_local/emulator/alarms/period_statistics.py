"""Statistics of the values of one metric in one period.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Statistics-definitions.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,10})?|100)")
_MEDIAN = 0.5
_PLAIN = ("SampleCount", "Sum", "Average", "Minimum", "Maximum")


@dataclass(frozen=True, slots=True)
class MetricSample:
    """A published value or statistic set."""

    at: float
    """Its time in seconds since 1970."""
    count: float
    total: float
    minimum: float
    maximum: float
    """`count`, `total`, `minimum`, `maximum`: Number of values, their sum, the smallest and the largest."""
    unit: str = "None"
    """Unit, ``None`` (the text) without one."""


@dataclass(frozen=True, slots=True)
class Datapoint:
    """The statistic of a period."""

    start: float
    """Start of the period in seconds since 1970."""
    value: float
    """The statistic."""
    samples: float | None = None
    """Number of values that it stands for. None for the result of an expression."""


def check_statistic(statistic: str) -> None:
    """Refuse a statistic that is not computed here.

    Raises ValueError if it is none of the five plain ones and no percentile.
    """
    if statistic not in _PLAIN and not _PERCENTILE.fullmatch(statistic):
        raise ValueError(
            f"the statistic {statistic!r} is not emulated: use one of {', '.join(_PLAIN)} or p0 to p100"
        )


def is_percentile(statistic: str) -> bool:
    """Return whether a statistic is a percentile."""
    return bool(_PERCENTILE.fullmatch(statistic))


def statistic_of(samples: Sequence[MetricSample], statistic: str) -> float | None:
    """Return a statistic of the samples of a period, None if they do not have it.

    Percentiles need all values: there is none if a value is negative or a statistic set has different values.
    """
    filled = [sample for sample in samples if sample.count > 0]
    if not filled:
        return None
    if is_percentile(statistic):
        return _percentile(filled, float(statistic[1:]) / 100)
    count, total = sum(each.count for each in filled), sum(each.total for each in filled)
    return {
        "SampleCount": count,
        "Sum": total,
        "Average": total / count,
        "Minimum": min(each.minimum for each in filled),
        "Maximum": max(each.maximum for each in filled),
    }[statistic]


def has_few_samples(statistic: str, samples: float) -> bool:
    """Return whether a percentile of so many values has little statistical significance.

    Fewer than 10/(1-p) values from the median on, fewer than 10/p below it:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/percentiles-with-low-samples.html
    """
    if not is_percentile(statistic):
        return False
    share = float(statistic[1:]) / 100
    rare = 1 - share if share >= _MEDIAN else share
    # 10/(1-0.9) is 100.00000000000003 in floating-point numbers.
    return rare > 0 and samples < round(10 / rare, 6)


def _percentile(samples: Sequence[MetricSample], share: float) -> float | None:
    """Interpolate between the two nearest ranks."""
    if any(each.minimum < 0 or each.minimum != each.maximum for each in samples):
        return None
    ordered = sorted((each.minimum, each.count) for each in samples)
    rank = share * (sum(count for _, count in ordered) - 1)
    low, high = _at(ordered, int(rank)), _at(ordered, int(rank) + 1)
    return low + (rank - int(rank)) * (high - low)


def _at(ordered: Sequence[tuple[float, float]], index: int) -> float:
    seen = 0.0
    for value, count in ordered:
        seen += count
        if index < seen:
            return value
    return ordered[-1][0]
