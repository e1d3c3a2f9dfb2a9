"""What a deployment's demand may be until capacity can be back.

There are two horizons. `soon` is the time until batch has left a shared deployment, `later` the time until
lent replicas serve again. Both take a point forecast and multiply it by the smallest factor with which the
same forecasts of the last day would have missed no more than a small share of the demand. That share is half
of the goal, because a new day differs from the last one. So the factor is measured for each service, and no
distribution is assumed. The margin of the blueprint comes on top.

After a collapse the demand is no guide to what comes next: clients that cannot reach a service may come back
all at once. These minutes do not count for the factors. Instead, `soon` adds the largest rise of the known
days, and `later` is at least the demand before the collapse (docs/capacity-shift-decisions.md).
"""

from __future__ import annotations

import math

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory, Numbers
from inference_decisions.capacity_shift.shift_answer import DeploymentForecast
from inference_decisions.capacity_shift.shift_settings import ShiftSettings

Flags = NDArray[numpy.bool_]

_DAY = 86400 // BIN_SECONDS
#: Forecasts that count for a factor.
_FACTOR_BINS = _DAY
#: Shares of the demand that the factors let them miss. Lent replicas are missing for ten times as long.
_SOON_MISSED, _LATER_MISSED = 0.0005, 0.00005
#: Bins whose slope goes on.
_SLOPE_BINS = 4
#: Level of the later forecast: the largest demand within these bins.
_LEVEL_BINS = 10
#: Earlier days with the same hours, and how far from the hour peaks count.
_SEASON_DAYS, _SEASON_MARGIN_BINS = (1, 7), 30
#: Demand below this share of its largest in these bins has collapsed.
_COLLAPSE_SHARE, _COLLAPSE_BINS = 0.3, 240
#: Below this demand, ratios say nothing.
_NOTHING = 1e-9


def forecast_demand(history: DemandHistory, settings: ShiftSettings, *, shared: bool) -> DeploymentForecast:
    """Return what the demand may be. The history has a measurement; gaps count as the demand before them.

    settings: The horizons and the margin.
    shared: Whether batch shares the deployment. Then replicas that are kept serve batch by its places until
        they are needed, and `later` also covers the largest rise of the known days.
    """
    values = fill_gaps(history.values)
    soon_ahead = math.ceil(settings.admission_seconds / BIN_SECONDS) + 1
    later_ahead = math.ceil(settings.reclaim_seconds / BIN_SECONDS) + 2
    margin = 1.0 + settings.safety_percent / 100.0
    recent = values[-(_FACTOR_BINS + later_ahead + _COLLAPSE_BINS) :]
    collapsed = _collapsed(recent)
    usable = ~numpy.isnan(history.values[-len(recent) :]) & ~collapsed
    soon = _upper(_trend(recent, soon_ahead), recent, usable, soon_ahead, _SOON_MISSED)
    later = _upper(_largest_of_last(recent, _LEVEL_BINS), recent, usable, later_ahead, _LATER_MISSED)
    season = _season(values, later_ahead)
    if collapsed[-1]:
        soon = max(soon, float(values[-1]) + _largest_rise(values, soon_ahead))
        later = max(later, float(values[-_COLLAPSE_BINS:].max()))
    if shared:
        later = max(later, float(values[-1]) + _largest_rise(values, later_ahead))
    later = max(soon, later, season or 0.0)
    return DeploymentForecast(
        level=float(values[-1]), soon=soon * margin, later=later * margin, season=season
    )


def fill_gaps(values: Numbers) -> Numbers:
    """Return the values with each gap filled by the value before it, or by the first one."""
    measured = ~numpy.isnan(values)
    index = numpy.maximum.accumulate(numpy.where(measured, numpy.arange(len(values)), -1))
    first = int(numpy.argmax(measured))
    return values[numpy.where(index < 0, first, index)]


def _collapsed(values: Numbers) -> Flags:
    """Return for each bin whether demand, on average of two bins, is far below what it was."""
    before = numpy.concatenate([values[:1], values[:-1]])
    found: Flags = (values + before) / 2.0 < _COLLAPSE_SHARE * _largest_of_last(values, _COLLAPSE_BINS)
    return found


def _trend(values: Numbers, ahead: int) -> Numbers:
    """Return the demand if its slope goes on, and at least the present one."""
    before = numpy.concatenate([numpy.full(_SLOPE_BINS, values[0]), values])[: len(values)]
    found: Numbers = values + numpy.maximum(0.0, values - before) / _SLOPE_BINS * ahead
    return found


def _largest_of_last(values: Numbers, bins: int) -> Numbers:
    padded = numpy.concatenate([numpy.full(bins - 1, values[0]), values])
    found: Numbers = sliding_window_view(padded, bins).max(axis=1)
    return found


def _outcomes(values: Numbers, ahead: int) -> Numbers:
    """Return the largest demand of the bins after each bin, as far as it is known."""
    if len(values) <= ahead:
        return values[:0]
    found: Numbers = sliding_window_view(values, ahead)[1:].max(axis=1)
    return found


def _upper(forecasts: Numbers, values: Numbers, usable: Flags, ahead: int, missed: float) -> float:
    """Return the newest forecast times the factor with which the last ones missed no more than they may.

    forecasts: The point forecast at each bin.
    values, usable: Demand, and whether its bin counts. A forecast counts if its own bin and all bins that it
        is for do.
    ahead: Bins that a forecast is for.
    missed: Share of the outcomes that the factor lets the forecasts miss.
    """
    outcomes = _outcomes(values, ahead)[-_FACTOR_BINS:]
    past = forecasts[: len(values) - ahead][-_FACTOR_BINS:]
    known = sliding_window_view(usable, ahead + 1).min(axis=1)[-_FACTOR_BINS:] if len(past) else usable[:0]
    counted: Flags = known & (past > _NOTHING)
    return float(forecasts[-1]) * _factor(outcomes[counted], past[counted], missed)


def _factor(outcomes: Numbers, forecasts: Numbers, missed: float) -> float:
    """Return the smallest factor from 1 with which the forecasts miss at most a share of the outcomes.

    A factor misses the sum of `outcome - factor * forecast` over the outcomes that are larger: no other set
    of outcomes has a larger sum. So the factor is large enough if no set misses more than is allowed. It is
    enough to look at the sets of the largest ratios.
    """
    if not len(outcomes):
        return 1.0
    order = numpy.argsort(-outcomes / forecasts)
    allowed = missed * outcomes.sum()
    return max(1.0, float(((outcomes[order].cumsum() - allowed) / forecasts[order].cumsum()).max()))


def _largest_rise(values: Numbers, ahead: int) -> float:
    """Return by how much demand has risen at most within the bins of a forecast."""
    outcomes = _outcomes(values, ahead)
    return float((outcomes - values[: len(outcomes)]).max(initial=0.0))


def _season(values: Numbers, ahead: int) -> float | None:
    """Return the largest demand of earlier days around the hours of the horizon."""
    found = []
    for day in _SEASON_DAYS:
        now = len(values) - day * _DAY
        if now >= 0:
            last = now + ahead + _SEASON_MARGIN_BINS
            found.append(float(values[max(0, now - _SEASON_MARGIN_BINS) : last].max()))
    return max(found, default=None)
