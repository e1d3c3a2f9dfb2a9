"""How much of a pool the capacity shift frees for batch, beside a schedule and an autoscaler.

The demand is that of ServeGen's services m-large, m-mid and m-small (`benchmarks/data/servegen.json`): rates
that change evenly between the middles of windows of ten minutes, with random arrivals around them, in bins of
a minute. The pool is sized to the peak of the counted days: sixty replicas. Each minute the function that a
platform runs decides from the minutes before. Its settings follow from the goal and from days 1 to 4. For the
shift with places, the other days are no clean hold-out: they had been replayed before
(`docs/capacity-shift-decisions.md`).

- `shift` has both speeds: places of batch in the deployment that it shares with real time (60 s until batch
  has left) above floors of replicas (600 s until they are back).
- `shift, replicas only` lends whole replicas, for deployments that batch does not share.
- `schedule` holds a multiple of the peak that each hour had on the days before, from a quarter of an hour
  before.
- `reactive` holds a multiple of the largest demand of the last minutes.
- `larger of both` is the larger one of `schedule` and `reactive`.

The other ways have the same means as `shift`: with `places` in the name, they have its places of batch and
its 60 s; without, they lend whole replicas. They are tuned as the shift is, on days 1 to 4: their multiples
and minutes are those that free most there with at most 0.1 % unmet. Against rivals without places and
untuned, as this page had them until 2026-11-28, the shift looked better than it is. `reactive, places` is one
line of code, and frees about as much: 2.3 points more to 5.7 points less. It leaves 1.3 to 8 times as much
unmet: it keeps 0.1 % in two of six cases, the shift in five.

Rows with `whole replicas` are those of a pool that models share, at three hand-over times. There the floors
take the slope, and as many recent changes on top as the last eight days needed; `shift_settings` chose the
numbers on days 1 to 4. `the best rule` is the best multiple of the last minutes, chosen by the counted days
themselves among all that leave no more unmet; there is no such row where none does. `tuned rule` is the one
that frees most on days 2 to 4 with at most 0.1 % unmet. `low` and `high` are the ends of the range of
`unmet`: the counted hours are drawn again, with repetition, and nine of ten draws are within it. Hours that
follow each other are alike, so the true range is rather wider.

The thirds are each service by a third of its clients (number of the client modulo 3). No setting was chosen
on them.

Rows that begin with `pool` put two services and batch of 6, 16 or 26 GPUs on one pool, with 20 and 16 GPUs
at their peaks and 150 s of hand-over: GPUs that the shift needs for 0.1 % unmet and all deadlines, beside
those of the clairvoyant bound, and of the cheapest rival that keeps both. Rivals are tuned on days before.

`not freed` is the share that is missing to a clairvoyant oracle, which frees all that real time does not need
in each minute. `unmet` is the share of the demand for which there was no capacity. That is an upper limit,
because a router's queue can hold a request for some seconds. In `steps`, the rate jumps between two windows
within one minute: a worst case, because the traces do not say how it changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

import numpy

from benchmarks.harness.figure import Figure
from benchmarks.harness.recorded_demand import HANDOVERS, SERVICES, THIRDS, TUNED_DAYS, demand_of
from inference_blueprints.measure.shift_simulation.pool_simulation import (
    PoolDays,
    PoolRole,
    SimulatedBatch,
    simulated_pool,
)
from inference_contracts.units import MINUTES_PER_DAY, MINUTES_PER_HOUR
from inference_decisions.capacity_shift.demand_history import Numbers
from inference_decisions.capacity_shift.replica_forecast import handover_bins, smallest_before
from inference_decisions.capacity_shift.shift_replay import (
    PoolDemand,
    SharingOutcome,
    both_speeds,
    places_only,
    reactive,
    replay,
    replica_floors,
    replicas_only,
    schedule_floors,
)
from inference_decisions.capacity_shift.shift_view import ShiftSettings

_SETTINGS = ShiftSettings(action="shift")
#: Largest unmet share that a setting may have on the days of the tuning.
_GOAL_UNMET = 0.001
_MINUTES = (1, 2, 3, 5, 10, 20)
_MARGINS = tuple(1.0 + number / 100 for number in range(61))
#: Multiples of the best rule for whole replicas. Restless demand needs large ones.
_RULE_MARGINS = tuple(1.0 + number / 100 for number in range(401))
#: Draws of hours for the range of a share.
_DRAWS = 1000
#: Name of the counted days, number of the first and of the one after the last, and whether rates jump.
_CASES = (("days 5 to 7", 4, 7, False), ("second week", 7, 14, False), ("days 5 to 7, steps", 4, 7, True))
_Case = tuple[str, int, int, bool]
#: Goals of what they do not free, in percent.
_NOT_FREED = {("m-large", 150.0): 15.0, ("m-small", 150.0): 8.0}
#: GPUs of batch on a pool.
_BATCH = (6.0, 16.0, 26.0)
_PAIRS = (("m-large", "m-small"), ("m-mid", "m-large"), ("m-small", "m-mid"))


def measure() -> list[Figure]:
    """Take the measurement."""
    with ProcessPoolExecutor() as processes:
        found = [
            figure for figures in processes.map(_figures, product(SERVICES, _CASES)) for figure in figures
        ]
        pools = list(processes.map(_pool, product(_PAIRS, _CASES[:2], _BATCH)))
        parts = list(processes.map(_whole_replicas, product((*SERVICES, *THIRDS), _CASES[:2], HANDOVERS)))
    found += [figure for each in parts if each.service in SERVICES for figure in each.figures()]
    for case, seconds in product(_CASES[:2], HANDOVERS):
        found += _of_thirds(
            [
                each
                for each in parts
                if each.service in THIRDS and (each.case, each.seconds) == (case, seconds)
            ]
        )
    return found + [figure for each in pools for figure in each]


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeReplicas:
    """What floors of whole replicas came to."""

    service: str
    case: _Case
    seconds: float
    """The hand-over time."""
    shift: SharingOutcome
    unmet_range: tuple[float, float]
    """The range of `shift.unmet`."""
    rule: SharingOutcome | None
    """The best multiple of the last minutes that leaves no more unmet. None if there is none."""
    tuned_rule: SharingOutcome | None
    """The best multiple with at most 0.1 % unmet on days 2 to 4. None if there is none."""

    def figures(self) -> Iterator[Figure]:
        """Yield the figures of one service."""
        name = f"shifted_capacity {self.service}, {self.case[0]}, whole replicas, {self.seconds:g} s"
        goal = _NOT_FREED.get((self.service, self.seconds))
        missing = 100.0 * (1.0 - self.shift.freed_of_oracle)
        yield Figure(f"{name}, not freed", missing, "%", goal=goal, simulated=True)
        yield Figure(f"{name}, unmet", 100.0 * self.shift.unmet, "%", goal=0.1, simulated=True)
        for end, share in zip(("low", "high"), self.unmet_range, strict=True):
            yield Figure(f"{name}, unmet, {end}", 100.0 * share, "%", simulated=True)
        if self.rule:
            best = 100.0 * (1.0 - self.rule.freed_of_oracle)
            beside = f"{name}, not freed, beside the best rule"
            yield Figure(beside, missing, "%", baseline=best, goal=1.0, simulated=True)
        if self.tuned_rule:
            missing = 100.0 * (1.0 - self.tuned_rule.freed_of_oracle)
            yield Figure(f"{name}, tuned rule, not freed", missing, "%", simulated=True)
            yield Figure(f"{name}, tuned rule, unmet", 100.0 * self.tuned_rule.unmet, "%", simulated=True)


def _whole_replicas(chosen: tuple[str, _Case, float]) -> _WholeReplicas:
    service, case, seconds = chosen
    demand = demand_of(service, case[1], case[2])
    settings = replace(_SETTINGS, reclaim_seconds=seconds)
    floors = replica_floors(demand, seconds)
    shift = replicas_only(demand, floors, settings)
    known = replace(demand, values=demand.values[: TUNED_DAYS * MINUTES_PER_DAY], first=MINUTES_PER_DAY)
    by_result, tuned = (
        rule and replicas_only(demand, reactive(demand, *rule), settings)
        for rule in (_best_rule(demand, settings, shift.unmet), _best_rule(known, settings, _GOAL_UNMET))
    )
    return _WholeReplicas(
        service=service,
        case=case,
        seconds=seconds,
        shift=shift,
        unmet_range=unmet_range(demand, floors, seconds),
        rule=by_result,
        tuned_rule=tuned,
    )


def _best_rule(demand: PoolDemand, settings: ShiftSettings, unmet: float) -> tuple[int, float] | None:
    """Return the minutes and the multiple that free most with at most a share unmet. None if none does."""
    found = []
    for minutes in _MINUTES:

        def outcome(margin: float, minutes: int = minutes) -> SharingOutcome:
            return replicas_only(demand, reactive(demand, minutes, margin), settings)

        # A larger multiple misses less and frees less.
        number = bisect_left(_RULE_MARGINS, -unmet, key=lambda margin: -outcome(margin).unmet)
        found += [
            (outcome(margin).freed_hours, minutes, margin) for margin in _RULE_MARGINS[number : number + 1]
        ]
    return max(found)[1:] if found else None


def unmet_range(demand: PoolDemand, floors: Numbers, seconds: float) -> tuple[float, float]:
    """Return between what 90 % of the unmet shares are when the counted hours are drawn again."""
    needed = numpy.minimum(demand.values, demand.replicas * demand.capacity)
    served = smallest_before(floors, handover_bins(seconds) + 1)
    hours = numpy.array([numpy.maximum(0.0, needed - served), needed])[:, demand.first :]
    hours = hours.reshape(2, -1, MINUTES_PER_HOUR).sum(axis=2)
    drawn = numpy.random.default_rng(1).integers(hours.shape[1], size=(_DRAWS, hours.shape[1]))
    missing, asked = hours[:, drawn].sum(axis=2)
    low, high = numpy.quantile(missing / asked, (0.05, 0.95))
    return float(low), float(high)


def _of_thirds(found: Sequence[_WholeReplicas]) -> Iterator[Figure]:
    """Yield figures of the thirds of the services, which nothing was chosen on."""
    (days, *_), seconds = found[0].case, found[0].seconds
    name = f"shifted_capacity {len(found)} thirds of services, {days}, whole replicas, {seconds:g} s"
    freed = [each.shift.freed_of_oracle for each in found]
    beside = [(each.shift, each.rule) for each in found if each.rule]
    yield Figure(f"{name}, not freed", 100.0 * (1.0 - fmean(freed)), "%", simulated=True)
    unmet = [each.shift.unmet for each in found]
    yield Figure(f"{name}, unmet, mean", 100.0 * fmean(unmet), "%", simulated=True)
    yield Figure(f"{name}, unmet, largest", 100.0 * max(unmet), "%", goal=0.1, simulated=True)
    more = sum(rule.freed_of_oracle > shift.freed_of_oracle for shift, rule in beside)
    yield Figure(f"{name}, the best rule frees more", more, "thirds", goal=0.0, simulated=True)


def _pool(chosen: tuple[tuple[str, str], _Case, float]) -> list[Figure]:
    pair, (days, first, end, _), work = chosen
    roles = [
        _role(service, peak, priority, end)
        for service, peak, priority in zip(pair, (20, 16), (100, 80), strict=True)
    ]
    minutes = len(roles[0].values)
    batch = SimulatedBatch(
        name="batch",
        work=numpy.full(minutes, work),
        deadline_minutes=MINUTES_PER_DAY,
        accelerators=1,
        maximum=40,
        handover_seconds=150.0,
    )
    tuned = first * MINUTES_PER_DAY
    found = {
        each.way: each
        for each in simulated_pool(PoolDays(roles=roles, batch=(batch,), learnt=MINUTES_PER_DAY, tuned=tuned))
    }
    shift, bound = found.pop("shift"), found.pop("clairvoyant bound")
    needed, rival = shift.accelerators, min(each.accelerators for each in found.values() if each.keeps)
    name = f"shifted_capacity pool of {' and '.join(pair)} with batch of {work:g} GPUs, {days}"
    beside = {"the bound": (bound.accelerators, 1.15), "the cheapest rival": (rival, 1.0)}
    return [
        *(
            Figure(f"{name}, beside {way}", needed, "GPUs", baseline=other, goal=goal, simulated=True)
            for way, (other, goal) in beside.items()
        ),
        Figure(f"{name}, unmet", 100.0 * shift.worst, "%", goal=0.1, simulated=True),
    ]


def _role(service: str, peak: int, priority: int, end: int) -> PoolRole:
    values = demand_of(service, 0, end).values
    return PoolRole(
        name=service,
        values=values,
        capacity=float(values.max()) / peak,
        accelerators=1,
        minimum=peak // 5,
        maximum=peak,
        handover_seconds=150.0,
        new_node_seconds=600.0,
        priority=priority,
    )


def _figures(chosen: tuple[str, _Case]) -> list[Figure]:
    service, (days, first, end, steps) = chosen
    demand = demand_of(service, first, end, steps=steps)
    replayed = replay(demand, _SETTINGS)
    goals = not steps
    figures = list(_of(f"{service}, {days}, shift", both_speeds(demand, replayed, _SETTINGS), goals=goals))
    if steps:
        return figures
    lent = replay(replace(demand, places=0), _SETTINGS).floors
    figures += _of(
        f"{service}, {days}, shift, replicas only", replicas_only(demand, lent, _SETTINGS), goals=False
    )
    known = replace(demand, values=demand.values[: TUNED_DAYS * MINUTES_PER_DAY], first=MINUTES_PER_DAY)
    for means, outcome in (("", replicas_only), (", places", places_only)):
        for way, keep in _WAYS.items():
            kept = keep(demand, *_tuned(keep, outcome, known))
            result = outcome(demand, kept, _SETTINGS)
            figures += _of(f"{service}, {days}, {way}{means}", result, goals=False)
    return figures


def _schedule(demand: PoolDemand, _minutes: int, margin: float) -> Numbers:
    return margin * schedule_floors(demand)


def _larger(demand: PoolDemand, minutes: int, margin: float) -> Numbers:
    return numpy.maximum(schedule_floors(demand), reactive(demand, minutes, margin))


_Keep = Callable[[PoolDemand, int, float], Numbers]
_WAYS: dict[str, _Keep] = {"schedule": _schedule, "reactive": reactive, "larger of both": _larger}
_Outcome = Callable[[PoolDemand, Numbers, ShiftSettings], SharingOutcome]


def _tuned(keep: _Keep, outcome: _Outcome, known: PoolDemand) -> tuple[int, float]:
    """Return the minutes and the margin that free most on days that are known.

    If none leaves as little unmet as is allowed, the ones that leave least are returned.
    """

    def rank(setting: tuple[int, float]) -> tuple[float, float]:
        found = outcome(known, keep(known, *setting), _SETTINGS)
        return max(0.0, found.unmet - _GOAL_UNMET), -found.freed_hours

    return min(product(_MINUTES, _MARGINS), key=rank)


def _of(name: str, outcome: SharingOutcome, *, goals: bool) -> Iterator[Figure]:
    missing = 100.0 * (1.0 - outcome.freed_of_oracle)
    yield Figure(
        f"shifted_capacity {name}, not freed", missing, "%", goal=10.0 if goals else None, simulated=True
    )
    yield Figure(
        f"shifted_capacity {name}, unmet",
        100.0 * outcome.unmet,
        "%",
        goal=0.1 if goals else None,
        simulated=True,
    )
