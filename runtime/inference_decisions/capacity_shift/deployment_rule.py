"""The decision about one deployment."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inference_contracts.number_text import number
from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory, Numbers
from inference_decisions.capacity_shift.replica_forecast import REMEMBERED_BINS, forecast_replicas
from inference_decisions.capacity_shift.shift_answer import (
    DeploymentDecision,
    DeploymentForecast,
    ShiftCode,
    ShiftReason,
)
from inference_decisions.capacity_shift.shift_view import DeploymentState, DeploymentView, ShiftSettings

# What a deployment's demand may be until capacity can be back.
#
# There are two horizons. `soon` is the time until batch has left a shared deployment, `later` the time until
# lent replicas serve again. Both take a point forecast and multiply it by the smallest factor with which the
# same forecasts of the last day would have missed no more than a small share of the demand. That share is
# half of the goal, because a new day differs from the last one. So the factor is measured for each service,
# and no distribution is assumed. The margin of the blueprint comes on top.
#
# After a collapse the demand is no guide to what comes next: clients that cannot reach a service may come
# back all at once. These minutes do not count for the factors. Instead, `soon` adds the largest rise of the
# known days, and `later` is at least the demand before the collapse (docs/capacity-shift-decisions.md).

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


_MINUTE = 60.0
#: A decision this soon after the last one repeats it: the floor falls once a minute.
_SAME_MINUTE = 30.0
#: Shares and demands that differ by rounding are equal.
_TOLERANCE = 1e-9


@dataclass(kw_only=True)
class DeploymentRule:
    """Decides about one deployment, and collects the reasons on the way."""

    deployment: DeploymentView
    """What runs now."""
    history: DemandHistory
    """Its demand, without bins of the future."""
    before: DeploymentState | None
    """What was decided before. None if that is not known."""
    elapsed_seconds: float
    """Time since the last decision. Negative if the clock went back."""
    settings: ShiftSettings
    """Limits."""
    now: float
    """Seconds since the epoch."""
    _reasons: list[ShiftReason] = field(default_factory=list)

    def decided(self) -> tuple[DeploymentDecision, DeploymentState]:
        """Return the decision, and the state for the next one."""
        forecast = None
        measured_at = self.history.measured_at
        if self.settings.freeze == "frozen":
            self._because("frozen", "people froze the shift: floor and places stay as they are")
            state = self.before or DeploymentState(floor=self.deployment.minimum)
        elif measured_at is None or self.now - measured_at > self.settings.stale_seconds:
            state = self._without_metrics(measured_at)
        elif self.history.measured_seconds < self.settings.learn_seconds:
            state = self._without_history()
        else:
            forecast, wanted = self._forecast()
            state = self._moved(forecast, wanted)
        if self.settings.action == "observe":
            self._because("observe", "capacityShift.action is `observe`: this is only recorded")
        decision = DeploymentDecision(
            name=self.deployment.name,
            floor=state.floor,
            batch_places=math.floor(self.deployment.batch_places * state.lent + _TOLERANCE),
            lent=state.lent,
            reasons=tuple(self._reasons),
            forecast=forecast,
        )
        return decision, state

    def _because(self, code: ShiftCode, text: str) -> None:
        self._reasons.append(ShiftReason(code, text))

    def _replicas(self, demand: float) -> int:
        """Return the replicas for a demand, within the range of the blueprint."""
        needed = math.ceil(demand / self.deployment.capacity - _TOLERANCE)
        return min(self.deployment.maximum, max(self.deployment.minimum, needed))

    def _without_metrics(self, measured_at: float | None) -> DeploymentState:
        """Keep what the largest known demand needs: real time wins."""
        age = "no demand was measured" if measured_at is None else f"{self.now - measured_at:.0f} s old"
        floor = self.deployment.maximum
        if self.history.measured_seconds >= self.settings.learn_seconds:
            largest = float(numpy.nanmax(self.history.values))
            floor = self._replicas(largest * (1.0 + self.settings.safety_percent / 100.0))
            text = f"the newest demand is {age}: the floor covers the largest known one, {number(largest)}"
        else:
            text = f"the newest demand is {age}, too little is known: the floor is the maximum"
        self._because("metrics_missing", f"{text}; batch gets nothing")
        floor = max(floor, self._bounded(self._floor_before()))
        return DeploymentState(floor=floor)

    def _without_history(self) -> DeploymentState:
        hours = self.history.measured_seconds / 3600.0
        needed = self.settings.learn_seconds / 3600.0
        self._because(
            "no_history",
            f"{hours:.1f} h of demand are known, {number(needed)} h are needed: nothing is lent, and the"
            " floor does not fall",
        )
        floor = self.before.floor if self.before else self.deployment.minimum
        return DeploymentState(floor=self._bounded(floor))

    def _forecast(self) -> tuple[DeploymentForecast, int]:
        """Return what is expected, and the replicas that it needs."""
        handover = self.deployment.handover_seconds
        if handover is None:
            found = forecast_demand(self.history, self.settings, shared=self.deployment.batch_places > 0)
            return found, self._replicas(found.later)
        values = fill_gaps(self.history.values)[-2 * REMEMBERED_BINS :]
        needed = forecast_replicas(
            values,
            handover_seconds=handover,
            capacity=self.deployment.capacity,
            minimum=self.deployment.minimum,
            maximum=self.deployment.maximum,
            margin=1.0 + self.settings.safety_percent / 100.0,
        )
        later, soon = float(needed.demand[-1]), float(values[-1])
        if self.deployment.batch_places:
            soon = forecast_demand(self.history, self.settings, shared=True).soon
        found = DeploymentForecast(level=float(values[-1]), soon=soon, later=max(soon, later), season=None)
        return found, max(int(needed.replicas[-1]), self._replicas(found.later))

    def _moved(self, forecast: DeploymentForecast, wanted: int) -> DeploymentState:
        """Move floor and places towards the forecast, within the limits of their pace."""
        if self.before is None:
            self._because("first_decision", "no earlier decision is known: the floor begins at what runs")
        if self.elapsed_seconds < 0:
            self._because(
                "clock_back", f"the clock went back by {-self.elapsed_seconds:.0f} s: nothing falls"
            )
        in_use = forecast.level if self.deployment.in_use is None else self.deployment.in_use
        wanted = self._wanted(forecast, wanted, in_use)
        floor, lower_since = self._floor(wanted)
        return DeploymentState(floor=floor, lower_since=lower_since, lent=self._lent(forecast, in_use))

    def _wanted(self, forecast: DeploymentForecast, wanted: int, in_use: float) -> int:
        minutes = self._handover_seconds / _MINUTE
        self._because(
            "forecast",
            f"within {number(minutes)} min demand may reach {number(forecast.later)}"
            f" (now {number(forecast.level)}): {wanted} replicas of {number(self.deployment.capacity)}",
        )
        if self._replicas(in_use) > wanted:
            wanted = self._replicas(in_use)
            self._because("in_use", f"{number(in_use)} is being served now: {wanted} replicas")
        needed = forecast.later / self.deployment.capacity
        if needed > self.deployment.maximum + _TOLERANCE:
            self._because(
                "most",
                f"{math.ceil(needed)} replicas would be needed, the maximum is {self.deployment.maximum}",
            )
        elif needed <= self.deployment.minimum - 1:
            self._because("least", f"the minimum of the blueprint is {self.deployment.minimum}")
        return wanted

    def _floor(self, wanted: int) -> tuple[int, float | None]:
        """Return the floor, and since when a lower one would have sufficed."""
        floor = self._bounded(self._floor_before())
        if wanted >= floor:
            return wanted, None
        since = self.before.lower_since if self.before else None
        if since is None or since > self.now or self.elapsed_seconds < 0:
            since = self.now
        waited = self.now - since
        # On a shared pool, what is wanted has sufficed for a hand-over (`forecast_replicas`).
        if self.deployment.handover_seconds is None:
            after = self.settings.lower_after_seconds
        else:
            after = 0.0 if self.before and self.elapsed_seconds >= 0 else _MINUTE
        if waited < after or self.settings.freeze == "unknown":
            self._because(
                "waits_to_lower",
                f"{wanted} replicas suffice since {waited:.0f} s; the floor falls after {number(after)} s",
            )
            self._explain_unknown()
            return floor, since
        if self.deployment.handover_seconds is not None:
            return wanted, None
        if self.elapsed_seconds < _SAME_MINUTE:
            return floor, since
        maximum = max(1, math.floor(floor * self.settings.lower_percent_per_minute / 100.0))
        lowered = max(wanted, floor - maximum)
        if lowered > wanted:
            self._because("lowers_slowly", f"the floor falls by at most {maximum} replicas in a minute")
        return lowered, since

    def _lent(self, forecast: DeploymentForecast, in_use: float) -> float:
        """Return the share of the deployment that batch may have."""
        if not self.deployment.batch_places:
            return 0.0
        reserve = max(forecast.soon, in_use * (1.0 + self.settings.safety_percent / 100.0))
        served = min(self.deployment.ready, self.deployment.maximum) * self.deployment.capacity
        free = max(0.0, served - reserve) / (self.deployment.maximum * self.deployment.capacity)
        before = self.before.lent if self.before else 0.0
        pace = self.settings.lend_percent_per_minute / 100.0 * self._share_of_minute()
        limit = before + (0.0 if self.settings.freeze == "unknown" else pace)
        self._because(
            "present_demand" if free else "nothing_to_lend",
            f"until batch has left, demand may reach {number(reserve)} of the {number(served)} that"
            f" {self.deployment.ready} ready replicas serve",
        )
        if free > limit + _TOLERANCE:
            self._because("lends_slowly", f"{free:.0%} are free, batch gets {limit:.0%} now")
            self._explain_unknown()
        return min(free, limit)

    def _explain_unknown(self) -> None:
        if self.settings.freeze == "unknown" and not any(
            each.code == "freeze_unknown" for each in self._reasons
        ):
            self._because("freeze_unknown", "the freeze switch cannot be read: nothing more is lent")

    @property
    def _handover_seconds(self) -> float:
        handover = self.deployment.handover_seconds
        return self.settings.reclaim_seconds if handover is None else handover

    def _floor_before(self) -> int:
        return self.before.floor if self.before else self.deployment.replicas

    def _bounded(self, replicas: int) -> int:
        return min(self.deployment.maximum, max(self.deployment.minimum, replicas))

    def _share_of_minute(self) -> float:
        """Return how much of a minute's change is allowed now. Missed minutes are not made up for."""
        return min(max(self.elapsed_seconds, 0.0), _MINUTE) / _MINUTE
