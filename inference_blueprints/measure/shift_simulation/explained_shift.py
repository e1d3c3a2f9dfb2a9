"""What the capacity shift of a blueprint decides and why, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.measure.shift_simulation.traced_workers import MovedWorkers, TracedWorkers
from inference_contracts.errors import UserError
from inference_contracts.number_text import number
from inference_contracts.units import SECONDS_PER_HOUR
from inference_decisions.capacity_shift.demand_history import BIN_SECONDS
from inference_decisions.capacity_shift.shift_answer import DeploymentDecision, DeploymentForecast
from inference_decisions.capacity_shift.shift_replay import decide_at
from inference_decisions.capacity_shift.shift_settings import ShiftSettings
from inference_decisions.capacity_shift.shift_state import ShiftState


def decisions_at(
    traced: Sequence[TracedWorkers], settings: ShiftSettings, hour: float
) -> list[DeploymentDecision]:
    """Return the decision about each of the workers at a time of the trace, after all before.

    traced: Elastic workers with their demand.
    hour: Hours since the start of the trace.
    Raises UserError if the trace has no such hour.
    """
    longest = len(traced[0].values) * BIN_SECONDS / SECONDS_PER_HOUR
    if not BIN_SECONDS / SECONDS_PER_HOUR <= hour <= longest:
        raise UserError(f"got --at {hour:g}; allowed are hours of the trace, from 0.02 to {longest:g}")
    number = round(hour * SECONDS_PER_HOUR / BIN_SECONDS) - 1
    return [_decision(each, settings, number) for each in traced]


def _decision(traced: TracedWorkers, settings: ShiftSettings, number: int) -> DeploymentDecision:
    demand = traced.demand(0)
    state: ShiftState | None = None
    for minute in range(number):
        state = decide_at(demand, minute, settings, state).state
    (found,) = decide_at(demand, number, settings, state).deployments
    return found


def explained_settings(
    moved: Sequence[MovedWorkers], settings: ShiftSettings, *, start_is_default: bool
) -> Iterator[str]:
    """Yield sentences on what the shift may do with each kind of workers, and how it decides.

    moved: Elastic workers.
    start_is_default: Whether the blueprint says nothing about the time in which lent workers are back.
    """
    for each in moved:
        workers = each.workers
        places = f"0 to {each.places} places" if each.places else "no places: it does not use these workers"
        yield (
            f"{workers.name} (model {workers.model}, pool {workers.pool}): the floor is between "
            f"{workers.least} and {workers.most} workers. A worker carries {number(workers.capacity, 4)} "
            f"requests in flight, {each.reason}. Batch gets {places}."
        )
    if settings.action == "observe":
        yield "Decisions are only recorded (capacityShift.action is observe)."
    else:
        yield "Decisions are carried out (capacityShift.action is shift)."
    yield (
        f"Each minute, floors are set to what the demand may reach within {settings.reclaim_seconds:g} s "
        f"(reclaimSeconds), with a margin of {settings.safety_percent:g} % (safetyPercent)."
    )
    yield from _explained_start(moved, settings, start_is_default=start_is_default)
    yield (
        "A floor rises at once. It falls after a lower one has sufficed for "
        f"{settings.lower_after_seconds:g} s, by at most {settings.lower_percent_per_minute:g} % in a "
        "minute, "
        "but always by one worker."
    )
    yield (
        f"Places of batch grow by at most {settings.lend_percent_per_minute:g} % of the workers in a "
        "minute, and "
        "shrink at once."
    )
    yield (
        f"Metrics older than {settings.stale_seconds:g} s count as missing: floors cover the largest known "
        "demand, or are the maximum if less than a day is known, and batch gets nothing."
    )
    yield (
        f"Nothing is lent, and no floor falls, before {settings.learn_seconds / SECONDS_PER_HOUR:g} h of "
        "demand are known."
    )


def _explained_start(
    moved: Sequence[MovedWorkers], settings: ShiftSettings, *, start_is_default: bool
) -> Iterator[str]:
    """Yield where the time comes from in which a lent worker serves again, and what is known about it."""
    source = (
        "It is assumed: the default of this library, which nobody measured. Measure the start of a worker on "
        "a new node, and set capacityShift.reclaimSeconds."
        if start_is_default
        else "It is from capacityShift.reclaimSeconds of the blueprint, which should be a measured start."
    )
    yield f"A lent worker counts as back after {settings.reclaim_seconds:g} s. {source}"
    for each in moved:
        minimum = each.start.minimum
        further = [part.clause for part in each.start.parts if part not in minimum.parts]
        yield (
            f"{each.workers.name}: a start on a new node takes at least {minimum.seconds:.0f} s "
            f"({minimum.clause}). Computed is bytes divided by bandwidths of the catalogue."
            + (f" Not in it, because you have not measured it: {'; '.join(further)}." if further else "")
            + (
                f" With these it is {each.start.seconds:.0f} s."
                if each.start.seconds > minimum.seconds
                else ""
            )
        )


def explained_decision(
    moved: MovedWorkers, decision: DeploymentDecision, settings: ShiftSettings
) -> Iterator[str]:
    """Yield sentences on a decision: first what it is, then why."""
    workers = moved.workers
    yield (
        f"{workers.name} (model {workers.model}): the floor is {decision.floor} of {workers.least} to "
        f"{workers.most} workers; batch may have {decision.batch_places} of {moved.places} places."
    )
    if decision.forecast is not None:
        yield from _explained_forecast(decision.forecast, settings)
    for reason in decision.reasons:
        yield f"{reason.code}: {reason.text}."


def _explained_forecast(forecast: DeploymentForecast, settings: ShiftSettings) -> Iterator[str]:
    yield f"Demand now: {number(forecast.level, 4)} requests in flight."
    yield (
        f"It may reach {number(forecast.soon, 4)}{_above(forecast.soon, forecast)} within "
        f"{settings.admission_seconds:g} s, until batch has left, and {number(forecast.later, 4)}"
        f"{_above(forecast.later, forecast)} within {settings.reclaim_seconds:g} s, until lent workers are "
        "back."
    )
    yield (
        "Both include a factor for how far such forecasts fell short on the last day, and a margin of "
        f"{settings.safety_percent:g} % (safetyPercent)."
    )
    if forecast.season is None:
        yield "No earlier day has the same hours yet."
    else:
        yield f"The same hours of earlier days needed up to {number(forecast.season, 4)}."


def _above(demand: float, forecast: DeploymentForecast) -> str:
    return f" ({demand / forecast.level - 1.0:+.0%})" if forecast.level > 0 else ""
