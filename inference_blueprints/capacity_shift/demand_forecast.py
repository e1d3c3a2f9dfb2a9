"""What a deployment's demand may be until capacity can be back.

There are two horizons. `soon` is the time until batch has left a shared deployment, `later` the time until
lent replicas serve again. Both take a point forecast, widen it by how far the same forecast fell short in
the last hours, and add the margin of the blueprint. How far a forecast falls short differs between services
and hours, so it is measured and no distribution is assumed. The constants were chosen on the first four
days of three services (docs/capacity-shift-decisions.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inference_blueprints.capacity_shift.demand_history import BIN_SECONDS, DemandHistory, Numbers
from inference_blueprints.capacity_shift.shift_answer import DeploymentForecast
from inference_blueprints.capacity_shift.shift_settings import ShiftSettings

Flags = NDArray[numpy.bool_]

_DAY = 86400 // BIN_SECONDS
#: Bins whose slope goes on, and how many bins it goes on.
_SLOPE_BINS, _SLOPE_AHEAD = 5, 3
#: Last shortfalls of a forecast that count, and the share of them that the upper forecast covers.
_SOON_BINS, _SOON_SHARE = 360, 0.95
_LATER_BINS, _LATER_SHARE = _DAY, 0.995
#: Level of the later forecast: the largest demand within these bins.
_LEVEL_BINS = 10
#: Earlier days with the same hours, how far from the hour peaks count, and the part of them that is covered.
_SEASON_DAYS, _SEASON_MARGIN_BINS, _SEASON_SHARE = (1, 7), 30, 1.0
#: Demand below this share of its largest in these bins has collapsed: clients that cannot reach the service
#: come back all at once. Replicas are kept for them.
_COLLAPSE_SHARE, _COLLAPSE_BINS = 0.3, 240
#: Below this demand, ratios say nothing.
_NOTHING = 1e-9


def forecast_demand(history: DemandHistory, settings: ShiftSettings) -> DeploymentForecast:
    """Return what the demand may be. The history has a measurement; gaps count as the demand before them."""
    values = filled(history.values)
    measured = ~numpy.isnan(history.values)
    soon_ahead = math.ceil(settings.admission_seconds / BIN_SECONDS) + 1
    later_ahead = math.ceil(settings.reclaim_seconds / BIN_SECONDS) + 2
    margin = 1.0 + settings.safety_percent / 100.0
    soon = _upper(_trend, values, measured, ahead=soon_ahead, bins=_SOON_BINS, share=_SOON_SHARE)
    later = _upper(_level, values, measured, ahead=later_ahead, bins=_LATER_BINS, share=_LATER_SHARE)
    season = _season(values, later_ahead)
    recent = values[-_COLLAPSE_BINS:].max()
    if values[-2:].mean() < _COLLAPSE_SHARE * recent:
        later = max(later, float(recent))
    later = max(soon, later, _SEASON_SHARE * (season or 0.0))
    return DeploymentForecast(
        level=float(values[-1]), soon=soon * margin, later=later * margin, season=season
    )


def filled(values: Numbers) -> Numbers:
    """Return the values with each gap filled by the value before it, or by the first one."""
    measured = ~numpy.isnan(values)
    index = numpy.maximum.accumulate(numpy.where(measured, numpy.arange(len(values)), -1))
    first = int(numpy.argmax(measured))
    return values[numpy.where(index < 0, first, index)]


def _trend(values: Numbers) -> Numbers:
    """Return the demand if its slope goes on, and at least the present one."""
    level = numpy.concatenate([values[:1], (values[1:] + values[:-1]) / 2.0])
    before = numpy.concatenate([numpy.full(min(_SLOPE_BINS, len(level)), level[0]), level[:-_SLOPE_BINS]])
    found: Numbers = numpy.maximum(values, level + (level - before) / _SLOPE_BINS * _SLOPE_AHEAD)
    return found


def _level(values: Numbers) -> Numbers:
    padded = numpy.concatenate([numpy.full(_LEVEL_BINS - 1, values[0]), values])
    found: Numbers = sliding_window_view(padded, _LEVEL_BINS).max(axis=1)
    return found


def _upper(
    point: Callable[[Numbers], Numbers],
    values: Numbers,
    measured: Flags,
    *,
    ahead: int,
    bins: int,
    share: float,
) -> float:
    """Return the point forecast times the factor that covered a share of the last outcomes.

    Parameters
    ----------
    point
        The point forecast at each bin.
    values, measured
        Demand, and whether it was measured: forecasts whose outcome was not measured do not count.
    ahead
        Bins that a forecast is for.
    bins
        Number of the last forecasts with an outcome.
    share
        Share of their outcomes that the factor covers.
    """
    tail = bins + ahead + _LEVEL_BINS
    values, measured = values[-tail:], measured[-tail:]
    forecasts = point(values)
    outcomes = (
        sliding_window_view(values, ahead)[1:].max(axis=1)[-bins:] if len(values) > ahead else values[:0]
    )
    known = (
        sliding_window_view(measured, ahead)[1:].min(axis=1)[-bins:] if len(values) > ahead else measured[:0]
    )
    past = forecasts[: len(forecasts) - ahead][-bins:]
    usable: Flags = known & (past > _NOTHING)
    factor = float(numpy.quantile(outcomes[usable] / past[usable], share)) if usable.any() else 1.0
    return float(forecasts[-1]) * max(1.0, factor)


def _season(values: Numbers, ahead: int) -> float | None:
    """Return the largest demand of earlier days around the hours of the horizon."""
    found = []
    for day in _SEASON_DAYS:
        now = len(values) - day * _DAY
        if now >= 0:
            last = now + ahead + _SEASON_MARGIN_BINS
            found.append(float(values[max(0, now - _SEASON_MARGIN_BINS) : last].max()))
    return max(found, default=None)
