"""The floors of roles that lend whole replicas on a shared pool, each with its own hand-over time.

All functions compute the floor after each bin of a history at once, from that bin and those before it. So a
replay of a week takes no longer than a decision, and a lost state changes nothing.

A floor covers the present demand where its slope leads, plus a number of times the recent size of its
changes. The number is the smallest with which the floors of the last days would have missed no more than half
of what they may. It is measured on whole replicas, so that rounding up is part of it: a role with large
replicas needs less on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, Numbers

#: Days that floors are measured on.
REMEMBERED_BINS = 8 * 86400 // BIN_SECONDS
#: Share of the demand that floors may miss in these days: half of the goal of 0.1 %, because a new day
#: differs from the last ones.
_MISSED = 0.0005
#: Bins that the slope is fitted to, and the part of it that goes on.
_SLOPE_BINS, _SLOPE_GOES_ON = 4, 0.8
#: Bins over which the size of changes is averaged.
_CHANGE_BINS = 40
#: Numbers of changes to choose from.
_FACTORS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.3, 2.6, 3.0)
_LARGE_FACTORS = (3.5, 4.0, 5.0, 6.0, 8.0, 10.0)
#: From this hand-over on, in bins, demand may turn before capacity is back. Then floors also cover a part of
#: what yesterday needed within half an hour of the same time, and changes count as at least a part of the
#: root of present and mean demand.
_LONG_BINS, _DAY_BINS, _AROUND_BINS = 6, 86400 // BIN_SECONDS, 30
_YESTERDAY, _LEAST_CHANGE = 0.5, 0.1
#: Demand below this share of its largest in four hours has collapsed: clients may come back all at once.
_COLLAPSE_SHARE, _COLLAPSE_BINS = 0.3, 240
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class ReplicaForecast:
    """What a role needs after each bin of its history."""

    replicas: Numbers
    """Its floor: whole replicas within its range."""
    demand: Numbers
    """Demand that it covers, before it is rounded and limited."""
    yesterday: float | None
    """Largest demand of yesterday around the time of the newest bin. None if that is not known, or the
    hand-over is short."""


def forecast_replicas(
    values: Numbers,
    *,
    handover_seconds: float,
    capacity: float,
    minimum: int,
    maximum: int,
    margin: float = 1.0,
) -> ReplicaForecast:
    """Return the floors after each bin.

    values: Demand in bins, oldest first, without gaps.
    handover_seconds: Time until a replica that the floor asks for serves.
    capacity: Demand that one replica serves.
    minimum, maximum: Range of replicas.
    margin: Factor on what floors cover.
    """
    bins = handover_bins(handover_seconds)
    ahead = bins + 1
    point, yesterday = _points(values, bins)
    change = _changes(values, ahead, bins)
    served = numpy.minimum(values, maximum * capacity)
    asked = _sums(served)
    floors = numpy.empty((len(_FACTORS) + len(_LARGE_FACTORS), len(values)), dtype=numpy.int32)
    chosen = numpy.full(len(values), len(floors) - 1)
    undecided = numpy.ones(len(values), dtype=bool)
    for number, factor in enumerate((*_FACTORS, *_LARGE_FACTORS)):
        wanted = numpy.ceil((point + factor * change) * margin / capacity - _TOLERANCE)
        # A lower floor has to suffice for a hand-over.
        floors[number] = largest_of_last(numpy.clip(wanted, minimum, maximum), bins)
        missing = numpy.maximum(0.0, served - capacity * smallest_before(floors[number], ahead))
        enough = undecided & (_sums(missing) <= _MISSED * asked + _TOLERANCE)
        chosen[enough] = number
        undecided &= ~enough
        if not undecided.any():
            break
    factors = numpy.array((*_FACTORS, *_LARGE_FACTORS))[chosen]
    demand: Numbers = (point + factors * change) * margin
    replicas: Numbers = floors[chosen, numpy.arange(len(values))].astype(float)
    return ReplicaForecast(replicas, demand, yesterday)


def handover_bins(seconds: float) -> int:
    """Return the bins of a hand-over, at least one."""
    return max(1, math.ceil(seconds / BIN_SECONDS))


def largest_of_last(values: Numbers, bins: int) -> Numbers:
    """Return the largest value of the last bins, with the own one."""
    padded = numpy.concatenate([numpy.full(bins - 1, values[0]), values])
    found: Numbers = sliding_window_view(padded, bins).max(axis=1)
    return found


def smallest_before(values: NDArray[numpy.generic], bins: int) -> Numbers:
    """Return for each bin the smallest value that was decided at the end of the bins before it."""
    padded = numpy.concatenate([numpy.full(bins, values[0]), values[:-1]])
    found: Numbers = sliding_window_view(padded, bins).min(axis=1)
    return found


def _points(values: Numbers, bins: int) -> tuple[Numbers, float | None]:
    """Return where demand leads at each bin, and what yesterday needed at the last one."""
    numbers = numpy.arange(_SLOPE_BINS) - (_SLOPE_BINS - 1) / 2.0
    windows = sliding_window_view(
        numpy.concatenate([numpy.full(_SLOPE_BINS - 1, values[0]), values]), _SLOPE_BINS
    )
    slope = windows @ (numbers / (numbers**2).sum())
    level = windows.mean(axis=1) + slope * numbers[-1]
    point = numpy.maximum(values, level) + _SLOPE_GOES_ON * numpy.maximum(0.0, slope) * (bins + 1)
    before = numpy.concatenate([values[:1], values[:-1]])
    largest = largest_of_last(values, _COLLAPSE_BINS)
    collapsed = (values + before) / 2.0 < _COLLAPSE_SHARE * largest
    point = numpy.where(collapsed, numpy.maximum(point, largest), point)
    if bins < _LONG_BINS or len(values) <= _DAY_BINS:
        return point, None
    around = 2 * _AROUND_BINS + bins + 1
    padded = numpy.concatenate([numpy.full(_AROUND_BINS, values[0]), values, numpy.full(around, values[-1])])
    yesterday = sliding_window_view(padded, around)[: len(values)].max(axis=1)
    point[_DAY_BINS:] = numpy.maximum(point[_DAY_BINS:], _YESTERDAY * yesterday[:-_DAY_BINS])
    return point, float(yesterday[-1 - _DAY_BINS])


def _changes(values: Numbers, ahead: int, bins: int) -> Numbers:
    """Return the mean size of the last changes within a hand-over."""
    rise = numpy.zeros(len(values))
    rise[ahead:] = numpy.abs(values[ahead:] - values[:-ahead])
    change = _sums(rise, _CHANGE_BINS) / _CHANGE_BINS
    if bins >= _LONG_BINS:
        mean = _sums(values) / numpy.minimum(numpy.arange(len(values)) + 1, REMEMBERED_BINS)
        change = change + _LEAST_CHANGE * numpy.sqrt(values * mean)
    return change


def _sums(values: Numbers, bins: int = REMEMBERED_BINS) -> Numbers:
    """Return the sum of the last bins."""
    total = numpy.concatenate([[0.0], values.cumsum()])
    last = numpy.arange(1, len(values) + 1)
    found: Numbers = total[last] - total[numpy.maximum(0, last - bins)]
    return found
