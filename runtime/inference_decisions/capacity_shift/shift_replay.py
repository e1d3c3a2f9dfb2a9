"""Replays a recorded demand: what each way to share a pool frees for batch, and what real time misses.

A pool of equal replicas serves one deployment, which batch shares. Each minute a decision is made from the
minutes before. What it gives back to real time serves after the time that this takes: a minute where batch
shares the deployment, `reclaim_seconds` where replicas were lent. What it lends is gone at once. Capacity on
its way back counts for nobody. Demand above the pool does not count, because no decision serves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory, Numbers
from inference_decisions.capacity_shift.deployment_rule import fill_gaps
from inference_decisions.capacity_shift.replica_forecast import (
    CHOSEN,
    ForecastSettings,
    forecast_replicas,
)
from inference_decisions.capacity_shift.shift_answer import ShiftDecision
from inference_decisions.capacity_shift.shift_decision import decide
from inference_decisions.capacity_shift.shift_view import CellView, DeploymentView, ShiftSettings, ShiftState

#: The shift remembers eight days.
_REMEMBERED_BINS = 8 * 86400 // BIN_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDemand:
    """A recorded demand and the pool that serves it."""

    values: Numbers
    """Demand in bins of `BIN_SECONDS`. NaN is a gap: nothing is decided upon it, and no demand is counted."""
    first: int
    """Number of the first bin that is counted. What is before is history."""
    replicas: int
    capacity: float
    """Demand that one of them serves."""
    minimum: int = 1
    """Replicas that always stay with real time: the smallest floor."""
    places: int = 1_000_000
    """Most places of batch. By default enough that rounding them says nothing."""
    handover_seconds: float | None = None
    """Time of a hand-over, on a shared pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingOutcome:
    """What one way to share a pool came to."""

    freed_hours: float
    """Hours of the whole pool that batch had."""
    oracle_hours: float
    """Hours that real time did not need, minute by minute: nobody can free more without missing demand."""
    pool_hours: float
    """Hours of the pool."""
    unmet: float
    """Share of the demand that was not served, from 0 to 1."""

    @property
    def freed_of_oracle(self) -> float:
        """Freed hours as a share of the oracle's."""
        return self.freed_hours / self.oracle_hours if self.oracle_hours else 1.0


@dataclass(frozen=True, slots=True)
class ShiftReplay:
    """What the shift decided in each minute of a replay."""

    kept: Numbers
    """Demand that real time can serve after each decision, once it is carried out: all but the places of
    batch."""
    floors: Numbers
    """Demand that its floor serves."""


def replay(demand: PoolDemand, settings: ShiftSettings) -> ShiftReplay:
    """Decide each minute. The state follows the decisions, whether or not the blueprint only observes."""
    kept, floors = numpy.full((2, len(demand.values)), demand.replicas * demand.capacity)
    state: ShiftState | None = None
    for number in range(demand.first - 1, len(demand.values)):
        decision = decide_at(demand, number, settings, state)
        (deployment,) = decision.deployments
        kept[number] = (1.0 - deployment.lent) * demand.replicas * demand.capacity
        floors[number] = deployment.floor * demand.capacity
        state = decision.state
    return ShiftReplay(kept, floors)


def replica_floors(
    demand: PoolDemand, handover_seconds: float, settings: ForecastSettings = CHOSEN
) -> Numbers:
    """Return the demand that the floors of a role on a shared pool serve, decided at the end of each bin.

    handover_seconds: Time until a replica that is asked for serves.
    """
    found: Numbers = demand.capacity * (
        forecast_replicas(
            fill_gaps(demand.values),
            handover_seconds=handover_seconds,
            capacity=demand.capacity,
            minimum=demand.minimum,
            maximum=demand.replicas,
            settings=settings,
        ).replicas
    )
    return found


def decide_at(
    demand: PoolDemand, number: int, settings: ShiftSettings, state: ShiftState | None
) -> ShiftDecision:
    """Return the decision at the end of a bin, when all replicas are ready."""
    now = (number + 1) * BIN_SECONDS
    known = demand.values[max(0, number + 1 - _REMEMBERED_BINS) : number + 1]
    deployment = DeploymentView(
        name="replay",
        pool="replay",
        minimum=demand.minimum,
        maximum=demand.replicas,
        replicas=demand.replicas,
        ready=demand.replicas,
        capacity=demand.capacity,
        batch_places=demand.places,
        handover_seconds=demand.handover_seconds,
    )
    return decide({"replay": DemandHistory(now, known)}, CellView((deployment,)), state, settings, now)


def both_speeds(demand: PoolDemand, replayed: ShiftReplay, settings: ShiftSettings) -> SharingOutcome:
    """Return what comes of a deployment that batch shares: by its places, on top of floors.

    Batch has what the places leave. Replicas above the floor may be with batch's own workers, so that real
    time is served by the smaller of the two.
    """
    fast, slow = _bins(settings.admission_seconds), _bins(settings.reclaim_seconds)
    floors = numpy.maximum(replayed.floors, _whole(replayed.kept, demand))
    served = numpy.minimum(_min_of_last(replayed.kept, fast), _min_of_last(floors, slow))
    return _outcome(demand, served, _max_of_last(replayed.kept, fast))


def places_only(demand: PoolDemand, kept: Numbers, settings: ShiftSettings) -> SharingOutcome:
    """Return what comes of places of batch in a deployment of which no replica is lent.

    kept: Demand that real time is to serve from each bin on.
    settings: How long batch takes to leave.
    """
    fast = _bins(settings.admission_seconds)
    pool = demand.replicas * demand.capacity
    held = numpy.clip(kept, demand.minimum * demand.capacity, pool)
    return _outcome(demand, _min_of_last(held, fast), _max_of_last(held, fast))


def replicas_only(demand: PoolDemand, floors: Numbers, settings: ShiftSettings) -> SharingOutcome:
    """Return what comes of lending whole replicas only.

    floors: Demand that is to be served from each bin on.
    settings: How long replicas take to come back.
    """
    held, bins = _whole(floors, demand), _bins(settings.reclaim_seconds)
    return _outcome(demand, _min_of_last(held, bins), _max_of_last(held, bins))


def schedule_floors(demand: PoolDemand) -> Numbers:
    """Return the floors of a schedule: the largest demand of each hour on all days of the history."""
    hour = 3600 // BIN_SECONDS
    hours = (numpy.arange(len(demand.values)) // hour) % 24
    past, past_hours = demand.values[: demand.first], hours[: demand.first]
    by_hour = numpy.array([_largest(past[past_hours == each]) for each in range(24)])
    ahead = numpy.concatenate([hours[hour // 4 :], (hours[-1] + numpy.zeros(hour // 4)).astype(int)])
    floors: Numbers = numpy.maximum(by_hour[hours], by_hour[ahead])
    return floors


def reactive(demand: PoolDemand, minutes: int = 10, margin: float = 1.1) -> Numbers:
    """Return what an autoscaler keeps: the largest demand of the last minutes, times a margin."""
    values = numpy.nan_to_num(demand.values)
    found: Numbers = margin * _max_of_last(numpy.append(values, values[-1]), minutes - 1)[1:]
    return found


def _largest(values: Numbers) -> float:
    return float(numpy.nanmax(values)) if numpy.isfinite(values).any() else 0.0


def _bins(seconds: float) -> int:
    return math.ceil(seconds / BIN_SECONDS)


def _whole(values: Numbers, demand: PoolDemand) -> Numbers:
    replicas = numpy.ceil(values / demand.capacity - 1e-9)
    return numpy.clip(replicas, demand.minimum, demand.replicas) * demand.capacity


def _min_of_last(values: Numbers, bins: int) -> Numbers:
    return -_max_of_last(-values, bins)


def _max_of_last(values: Numbers, bins: int) -> Numbers:
    """Return for each bin the largest value that was decided at the end of the `bins + 1` bins before it."""
    padded = numpy.concatenate([numpy.full(bins + 1, values[0]), values[:-1]])
    found: Numbers = sliding_window_view(padded, bins + 1).max(axis=1)
    return found


def _outcome(demand: PoolDemand, served: Numbers, held: Numbers) -> SharingOutcome:
    pool = demand.replicas * demand.capacity
    counted = slice(demand.first, None)
    known = ~numpy.isnan(demand.values[counted])
    needed = numpy.minimum(demand.values[counted][known], pool)
    missing = numpy.maximum(0.0, needed - served[counted][known])
    hours = BIN_SECONDS / 3600.0
    total = float(needed.sum())
    return SharingOutcome(
        freed_hours=float((1.0 - numpy.minimum(held[counted][known], pool) / pool).sum()) * hours,
        oracle_hours=float((1.0 - needed / pool).sum()) * hours,
        pool_hours=len(needed) * hours,
        unmet=float(missing.sum()) / total if total else 0.0,
    )
