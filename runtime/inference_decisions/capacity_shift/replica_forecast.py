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
#: Numbers of changes to choose from.
_FACTORS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.3, 2.6, 3.0)
_LARGE_FACTORS = (3.5, 4.0, 5.0, 6.0, 8.0, 10.0)
#: Bins before a collapse that count.
_COLLAPSE_BINS = 240
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSettings:
    """The numbers of the forecast, for all roles and hand-over times.

    `benchmarks/shift_settings.py` chooses them on days 1 to 4 of recorded demands.
    """

    slope_bins: int = 3
    """Bins that the slope is fitted to."""
    slope_goes_on: float = 0.8
    """Part of the slope that goes on."""
    change_bins: int = 120
    """Bins over which the size of changes is averaged."""
    collapse_share: float = 0.2
    """Demand below this share of its largest in four hours has collapsed: clients may come back all at
    once."""


CHOSEN = ForecastSettings()


@dataclass(frozen=True, slots=True)
class ReplicaForecast:
    """What a role needs after each bin of its history."""

    replicas: Numbers
    """Its floor: whole replicas within its range."""
    demand: Numbers
    """Demand that it covers, before it is rounded and limited."""


def forecast_replicas(
    values: Numbers,
    *,
    handover_seconds: float,
    capacity: float,
    minimum: int,
    maximum: int,
    margin: float = 1.0,
    settings: ForecastSettings = CHOSEN,
) -> ReplicaForecast:
    """Return the floors after each bin.

    values: Demand in bins, oldest first, without gaps.
    handover_seconds: Time until a replica that the floor asks for serves.
    capacity: Demand that one replica serves.
    minimum, maximum: Range of replicas.
    margin: Factor on what floors cover.
    settings: What the chosen numbers are compared with.
    """
    bins = handover_bins(handover_seconds)
    ahead = bins + 1
    point = _points(values, ahead, settings)
    change = _changes(values, ahead, settings.change_bins)
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
    return ReplicaForecast(replicas, demand)


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


def _points(values: Numbers, ahead: int, settings: ForecastSettings) -> Numbers:
    """Return where demand leads at each bin."""
    bins = settings.slope_bins
    numbers = numpy.arange(bins) - (bins - 1) / 2.0
    windows = sliding_window_view(numpy.concatenate([numpy.full(bins - 1, values[0]), values]), bins)
    slope = windows @ (numbers / (numbers**2).sum())
    level = windows.mean(axis=1) + slope * numbers[-1]
    point = numpy.maximum(values, level) + settings.slope_goes_on * numpy.maximum(0.0, slope) * ahead
    before = numpy.concatenate([values[:1], values[:-1]])
    largest = largest_of_last(values, _COLLAPSE_BINS)
    collapsed = (values + before) / 2.0 < settings.collapse_share * largest
    found: Numbers = numpy.where(collapsed, numpy.maximum(point, largest), point)
    return found


def _changes(values: Numbers, ahead: int, bins: int) -> Numbers:
    """Return the mean size of the last changes within a hand-over."""
    change = numpy.zeros(len(values))
    change[ahead:] = numpy.abs(values[ahead:] - values[:-ahead])
    return _sums(change, bins) / bins


def _sums(values: Numbers, bins: int = REMEMBERED_BINS) -> Numbers:
    """Return the sum of the last bins."""
    total = numpy.concatenate([[0.0], values.cumsum()])
    last = numpy.arange(1, len(values) + 1)
    found: Numbers = total[last] - total[numpy.maximum(0, last - bins)]
    return found
