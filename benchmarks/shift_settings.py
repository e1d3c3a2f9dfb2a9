"""How the numbers of the forecast for whole replicas are chosen, and what the choice is worth on other days.

The demands are days 1 to 4 of ServeGen's m-large, m-mid and m-small, each at hand-over times of 600, 150 and
30 s, with sixty replicas at the peak of these days. Day 1 is only learnt from. One set of numbers is chosen
for all nine, of 256:

1. A set is allowed if the floors miss at most 0.1 % of the demand on each day, for each service and each
   hand-over time. If no set is allowed, those that exceed it least are.
2. Of the allowed sets, those within 0.1 points of the most freed hours (mean over services, hand-over times
   and days) are as good. Of these, the one that misses least is chosen.

What floors may miss of the days that they know, 0.05 %, is not chosen: it is half of the goal.

Rows with `days left out` leave out one day, choose by the two others, and count the day that was left out.
They show the mean of the three days; `largest` is that of one day. `differ` is the number of shipped numbers
that are not those chosen by all three days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from itertools import product

import numpy

from benchmarks.harness.figure import Figure
from benchmarks.harness.recorded_demand import HANDOVERS, SERVICES, TUNED_DAYS, demand_of
from inference_contracts.units import MINUTES_PER_DAY
from inference_decisions.capacity_shift.replica_forecast import CHOSEN, ForecastSettings
from inference_decisions.capacity_shift.shift_replay import replica_floors, replicas_only
from inference_decisions.capacity_shift.shift_view import ShiftSettings

#: Days that count, by their number from 0.
_DAYS = tuple(range(1, TUNED_DAYS))
_CASES = tuple(product(SERVICES, HANDOVERS, _DAYS))
_MOST_MISSED = 0.001
#: Difference of the freed share that says nothing.
_AS_GOOD = 0.001
CANDIDATES: Mapping[str, Sequence[float]] = {
    "slope_bins": (2, 3, 4, 6),
    "slope_goes_on": (0.5, 0.65, 0.8, 1.0),
    "change_bins": (40, 80, 120, 180),
    "collapse_share": (0.3, 0.25, 0.2, 0.15),
}


def measure() -> list[Figure]:
    """Take the measurement."""
    sets = [
        ForecastSettings(**dict(zip(CANDIDATES, numbers, strict=True)))  # type: ignore[arg-type]
        for numbers in product(*CANDIDATES.values())
    ]
    with ProcessPoolExecutor() as processes:
        # By set and case: the freed share of the oracle's hours, and the missed share of the demand.
        found = numpy.array(list(processes.map(outcomes, sets, chunksize=16)))
    chosen = sets[choose(found[:, :, 0], found[:, :, 1])]
    figures = [
        Figure(f"shift_settings {each.name} that the days choose", float(getattr(chosen, each.name)), "")
        for each in fields(chosen)
    ]
    different = sum(getattr(chosen, each.name) != getattr(CHOSEN, each.name) for each in fields(chosen))
    figures.append(Figure("shift_settings differ", different, "numbers", goal=0))
    left_out = numpy.empty((len(_CASES), 2))
    for day in _DAYS:
        own = numpy.array([each[2] == day for each in _CASES])
        by_others = choose(found[:, ~own, 0], found[:, ~own, 1])
        left_out[own] = found[by_others, own]
    worst = 100.0 * float(left_out[:, 1].max())
    figures.append(
        Figure("shift_settings days left out, unmet, largest", worst, "%", goal=0.1, simulated=True)
    )
    for service, seconds in product(SERVICES, HANDOVERS):
        own = numpy.array([each[:2] == (service, seconds) for each in _CASES])
        freed, missed = map(float, 100.0 * left_out[own].mean(axis=0))
        name = f"shift_settings {service}, {seconds:g} s, days left out"
        figures += [
            Figure(f"{name}, not freed", 100.0 - freed, "%", simulated=True),
            Figure(f"{name}, unmet", missed, "%", goal=0.1, simulated=True),
        ]
    return figures


def choose(freed: numpy.ndarray, missed: numpy.ndarray) -> int:
    """Return the number of the set that is chosen.

    freed, missed: Shares from 0 to 1, by set and case.
    """
    worst = missed.max(axis=1)
    allowed = worst <= max(_MOST_MISSED, float(worst.min()))
    mean = numpy.where(allowed, freed.mean(axis=1), -numpy.inf)
    good = mean >= mean.max() - _AS_GOOD
    return int(numpy.where(good, missed.mean(axis=1), numpy.inf).argmin())


def outcomes(settings: ForecastSettings) -> list[tuple[float, float]]:
    """Return the freed share and the missed share of each case."""
    found = []
    for service, seconds in product(SERVICES, HANDOVERS):
        demand = demand_of(service, _DAYS[0], TUNED_DAYS)
        floors = replica_floors(demand, seconds, settings)
        for day in _DAYS:
            end = (day + 1) * MINUTES_PER_DAY
            part = replace(demand, values=demand.values[:end], first=day * MINUTES_PER_DAY)
            outcome = replicas_only(
                part, floors[:end], ShiftSettings(action="shift", reclaim_seconds=seconds)
            )
            found.append((outcome.freed_of_oracle, outcome.unmet))
    return found
