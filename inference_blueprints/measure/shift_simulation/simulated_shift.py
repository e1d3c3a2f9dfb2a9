"""What the capacity shift of a blueprint would free on the days of a trace, and why it decides so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from inference_blueprints.measure.shift_simulation.traced_workers import (
    MovedWorkers,
    TracedWorkers,
    learnt_bins,
)
from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_contracts.errors import UserError
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_HOUR
from inference_decisions.capacity_shift.demand_history import BIN_SECONDS
from inference_decisions.capacity_shift.shift_answer import DeploymentDecision, DeploymentForecast
from inference_decisions.capacity_shift.shift_replay import (
    SharingOutcome,
    both_speeds,
    decide_at,
    reactive,
    replay,
    replicas_only,
    schedule_floors,
)
from inference_decisions.capacity_shift.shift_view import ShiftSettings, ShiftState


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
    # Floors of a shared pool follow from the history alone.
    first = max(0, number - 1) if demand.handover_seconds else 0
    for minute in range(first, number):
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
        if workers.handover_seconds:
            yield (
                f"{workers.name} shares its pool with other models, at priority {workers.priority}. A "
                f"hand-over takes {workers.handover_seconds:g} s. Its floor rises at once, and falls when a "
                "lower one has sufficed for a hand-over."
            )
    if settings.action == "observe":
        yield "Decisions are only recorded (capacityShift.action is observe)."
    else:
        yield "Decisions are carried out (capacityShift.action is shift)."
    if not all(each.workers.handover_seconds for each in moved):
        yield from _explained_pace(moved, settings, start_is_default=start_is_default)
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


def _explained_pace(
    moved: Sequence[MovedWorkers], settings: ShiftSettings, *, start_is_default: bool
) -> Iterator[str]:
    """Yield how floors move on pools that models do not share."""
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
    places = f"batch may have {decision.batch_places} of {moved.places} places"
    yield (
        f"{workers.name} (model {workers.model}): the floor is {decision.floor} of {workers.least} to "
        f"{workers.most} workers; {places if moved.places else 'no queue uses them'}."
    )
    if decision.forecast is not None and workers.handover_seconds:
        yield from _explained_replicas(decision.forecast, workers.handover_seconds)
    elif decision.forecast is not None:
        yield from _explained_forecast(decision.forecast, settings)
    for reason in decision.reasons:
        yield f"{reason.code}: {reason.text}."


def _explained_replicas(forecast: DeploymentForecast, handover_seconds: float) -> Iterator[str]:
    yield (
        f"Demand now: {number(forecast.level, 4)} requests in flight. It may reach "
        f"{number(forecast.later, 4)}{_above(forecast.later, forecast)} within {handover_seconds:g} s, until "
        "a worker has taken the place of another role's."
    )
    yield (
        "This is the floor that the role asks for. The shift then divides the pool by priority, and batch "
        "has the rest."
    )


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


SharingWay = Literal["shift", "schedule only", "reactive only", "oracle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSharing:
    """What one way to share the elastic workers of a model came to."""

    model: str
    way: SharingWay
    pool_hours: float
    """Hours of all its elastic workers times their accelerators."""
    freed_hours: float
    """Those that batch had."""
    oracle_hours: float
    """Those that real time did not need."""
    unmet: float
    """Share of the demand that was not served, from 0 to 1."""

    @property
    def freed_percent(self) -> float:
        """Freed hours, in percent of the pool's."""
        return 100.0 * self.freed_hours / self.pool_hours

    @property
    def freed_of_oracle_percent(self) -> float:
        """Freed hours, in percent of the oracle's."""
        return 100.0 * self.freed_hours / self.oracle_hours if self.oracle_hours else 100.0


def demand_long_enough(rates: RequestRates, settings: ShiftSettings) -> None:
    """Check that a trace is longer than what is learnt from. Raises UserError if it is not."""
    seconds, hour = rates.end_seconds - rates.start_seconds, 3600.0
    if seconds < settings.learn_seconds + hour:
        raise UserError(
            f"got a trace of {seconds / hour:g} h; allowed are {settings.learn_seconds / hour + 1.0:g} h "
            "or more,"
            f" because the first {settings.learn_seconds / hour:g} h are only learnt from"
        )


def simulated_shift(traced: Sequence[TracedWorkers], settings: ShiftSettings) -> Iterator[ModelSharing]:
    """Yield what each way comes to for each model, in the order of the workers."""
    outcomes = [(each, _outcomes(each, settings)) for each in traced]
    for model in dict.fromkeys(each.moved.workers.model for each in traced):
        of_model = [(each, found) for each, found in outcomes if each.moved.workers.model == model]
        for way in of_model[0][1]:
            yield _summed(model, way, [(each, found[way]) for each, found in of_model])


def _outcomes(traced: TracedWorkers, settings: ShiftSettings) -> Mapping[SharingWay, SharingOutcome]:
    demand = traced.demand(learnt_bins(settings))
    replayed = replay(demand, settings)
    shared = traced.moved.places > 0
    shift = (
        both_speeds(demand, replayed, settings)
        if shared
        else replicas_only(demand, replayed.floors, settings)
    )
    return {
        "shift": shift,
        "schedule only": replicas_only(demand, schedule_floors(demand), settings),
        "reactive only": replicas_only(demand, reactive(demand), settings),
        "oracle": SharingOutcome(
            freed_hours=shift.oracle_hours,
            oracle_hours=shift.oracle_hours,
            pool_hours=shift.pool_hours,
            unmet=0.0,
        ),
    }


def _summed(
    model: str, way: SharingWay, found: Sequence[tuple[TracedWorkers, SharingOutcome]]
) -> ModelSharing:
    """Sum the workers of a model. A request needs every role of its release: the worst one counts."""
    unmet: dict[str, float] = {}
    requests: dict[str, float] = {}
    pool = freed = oracle = 0.0
    for traced, outcome in found:
        workers = traced.moved.workers
        unmet[workers.release] = max(unmet.get(workers.release, 0.0), outcome.unmet)
        requests[workers.release] = traced.moved.peak_requests_per_second
        accelerators = workers.most * workers.accelerators
        pool += accelerators * outcome.pool_hours
        freed += accelerators * outcome.freed_hours
        oracle += accelerators * outcome.oracle_hours
    missed = sum(unmet[release] * requests[release] for release in unmet)
    return ModelSharing(
        model=model,
        way=way,
        pool_hours=pool,
        freed_hours=freed,
        oracle_hours=oracle,
        unmet=missed / sum(requests.values()),
    )
