"""How much of a pool the capacity shift frees for batch, beside a schedule and an autoscaler.

The demand is that of ServeGen's services m-large, m-mid and m-small (`benchmarks/data/servegen.json`): rates
that change evenly between the middles of windows of ten minutes, with random arrivals around them, in bins of
a minute. The pool is sized to the peak of the counted days: sixty replicas. Each minute the function that a
platform runs decides from the minutes before. Its settings follow from the goal and from days 1 to 4. The
other days are no clean hold-out: they had been replayed before (`docs/capacity-shift-decisions.md`).

- `shift` has both speeds: places of batch in the deployment that it shares with real time (60 s until batch
  has left) above floors of replicas (600 s until they are back).
- `shift, replicas only` lends whole replicas, for deployments that batch does not share.
- `schedule` holds the peak that each hour had on the days before, from a quarter of an hour before.
- `reactive` holds the largest demand of the last ten minutes and a tenth.
- `larger of both` is the larger one of `schedule` and `reactive`. These three lend whole replicas.

`not freed` is the share that is missing to a clairvoyant oracle, which frees all that real time does not need
in each minute. `unmet` is the share of the demand for which there was no capacity. That is an upper limit,
because a router's queue can hold a request for some seconds. In `steps`, the rate jumps between two windows
within one minute: a worst case, because the traces do not say how it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy

from benchmarks.harness.figure import Figure
from inference_blueprints.serving.autoscaling.request_rates import RequestRates, demand_per_minute
from inference_contracts.units import MINUTES_PER_DAY
from inference_decisions.capacity_shift.demand_history import Numbers
from inference_decisions.capacity_shift.shift_replay import (
    PoolDemand,
    SharingOutcome,
    both_speeds,
    reactive,
    replay,
    replicas_only,
    schedule_floors,
)
from inference_decisions.capacity_shift.shift_view import ShiftSettings

_DATA = Path(__file__).parent / "data"
_SERVICES = ("m-large", "m-mid", "m-small")
_REPLICAS = 60
_SEED = 20261123
_SETTINGS = ShiftSettings(action="shift")
#: Name of the counted days, number of the first and of the one after the last, and whether rates jump.
_CASES = (("days 5 to 7", 4, 7, False), ("second week", 7, 14, False), ("days 5 to 7, steps", 4, 7, True))
_Case = tuple[str, int, int, bool]


def measure() -> list[Figure]:
    """Take the measurement."""
    with ProcessPoolExecutor() as processes:
        return [
            figure for figures in processes.map(_figures, product(_SERVICES, _CASES)) for figure in figures
        ]


def _figures(chosen: tuple[str, _Case]) -> list[Figure]:
    service, (days, first, end, steps) = chosen
    demand = _demand(service, first, end, steps=steps)
    replayed = replay(demand, _SETTINGS)
    goals = not steps
    figures = list(_of(f"{service}, {days}, shift", both_speeds(demand, replayed, _SETTINGS), goals=goals))
    if steps:
        return figures
    ways: dict[str, Numbers] = {
        "shift, replicas only": replay(replace(demand, places=0), _SETTINGS).floors,
        "schedule": schedule_floors(demand),
        "reactive": reactive(demand),
        "larger of both": numpy.maximum(schedule_floors(demand), reactive(demand)),
    }
    for way, floors in ways.items():
        figures += _of(f"{service}, {days}, {way}", replicas_only(demand, floors, _SETTINGS), goals=False)
    return figures


def _demand(service: str, first: int, end: int, *, steps: bool) -> PoolDemand:
    """Return the demand of days, with all days before as history."""
    week = RequestRates.read(_DATA / f"servegen_{service}.csv")
    second = RequestRates.read(_DATA / f"servegen_{service}_week_2.csv")
    rates = RequestRates(week.windows + second.windows).between(0.0, end * 86400.0)
    values = numpy.array(demand_per_minute(rates, _SEED, steps=steps))
    counted = first * MINUTES_PER_DAY
    capacity = float(values[counted:].max()) / _REPLICAS
    return PoolDemand(values=values, first=counted, replicas=_REPLICAS, capacity=capacity)


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
