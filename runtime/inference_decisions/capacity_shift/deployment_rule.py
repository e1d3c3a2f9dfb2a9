"""The decision about one deployment."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy

from inference_decisions.capacity_shift.demand_forecast import forecast_demand
from inference_decisions.capacity_shift.demand_history import DemandHistory
from inference_decisions.capacity_shift.shift_answer import (
    DeploymentDecision,
    DeploymentForecast,
    ShiftCode,
    ShiftReason,
)
from inference_decisions.capacity_shift.shift_settings import ShiftSettings
from inference_decisions.capacity_shift.shift_state import DeploymentState
from inference_decisions.capacity_shift.shift_view import DeploymentView

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
            forecast = forecast_demand(self.history, self.settings, shared=self.deployment.batch_places > 0)
            state = self._moved(forecast)
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
            text = f"the newest demand is {age}: the floor covers the largest known one, {largest:.4g}"
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
            f"{hours:.1f} h of demand are known, {needed:g} h are needed: nothing is lent, and the floor"
            " does not fall",
        )
        floor = self.before.floor if self.before else self.deployment.minimum
        return DeploymentState(floor=self._bounded(floor))

    def _moved(self, forecast: DeploymentForecast) -> DeploymentState:
        """Move floor and places towards the forecast, within the limits of their pace."""
        if self.before is None:
            self._because("first_decision", "no earlier decision is known: the floor begins at what runs")
        if self.elapsed_seconds < 0:
            self._because(
                "clock_back", f"the clock went back by {-self.elapsed_seconds:.0f} s: nothing falls"
            )
        in_use = forecast.level if self.deployment.in_use is None else self.deployment.in_use
        wanted = self._wanted(forecast, in_use)
        floor, lower_since = self._floor(wanted)
        return DeploymentState(floor=floor, lower_since=lower_since, lent=self._lent(forecast, in_use))

    def _wanted(self, forecast: DeploymentForecast, in_use: float) -> int:
        minutes = self.settings.reclaim_seconds / _MINUTE
        wanted = self._replicas(forecast.later)
        self._because(
            "forecast",
            f"within {minutes:g} min demand may reach {forecast.later:.4g} (now {forecast.level:.4g}):"
            f" {wanted} replicas of {self.deployment.capacity:.4g}",
        )
        if self._replicas(in_use) > wanted:
            wanted = self._replicas(in_use)
            self._because("in_use", f"{in_use:.4g} is being served now: {wanted} replicas")
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
        if waited < self.settings.lower_after_seconds or self.settings.freeze == "unknown":
            self._because(
                "waits_to_lower",
                f"{wanted} replicas suffice since {waited:.0f} s; the floor falls after"
                f" {self.settings.lower_after_seconds:g} s",
            )
            self._explain_unknown()
            return floor, since
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
            f"until batch has left, demand may reach {reserve:.4g} of the {served:.4g} that"
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

    def _floor_before(self) -> int:
        return self.before.floor if self.before else self.deployment.replicas

    def _bounded(self, replicas: int) -> int:
        return min(self.deployment.maximum, max(self.deployment.minimum, replicas))

    def _share_of_minute(self) -> float:
        """Return how much of a minute's change is allowed now. Missed minutes are not made up for."""
        return min(max(self.elapsed_seconds, 0.0), _MINUTE) / _MINUTE
