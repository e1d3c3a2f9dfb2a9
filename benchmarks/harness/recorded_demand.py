"""Recorded demand that benchmarks of the capacity shift replay: two weeks of ServeGen's services."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy

from inference_blueprints.serving.autoscaling.request_rates import RequestRates, demand_per_minute
from inference_contracts.units import MINUTES_PER_DAY, SECONDS_PER_DAY
from inference_decisions.capacity_shift.shift_replay import PoolDemand

SERVICES = ("m-large", "m-mid", "m-small")
#: Each service by a third of its clients: those whose number leaves the same rest.
THIRDS = tuple(f"{service} {rest}" for service in SERVICES for rest in range(3))
#: Days on which settings are chosen, and rivals tuned.
TUNED_DAYS = 4
#: Hand-over times, in seconds.
HANDOVERS = (600.0, 150.0, 30.0)
#: Size of the pool at the peak of the counted days.
REPLICAS = 60
_DATA = Path(__file__).parents[1] / "data"
_SEED = 20261123


@cache
def demand_of(name: str, first: int, end: int, *, steps: bool = False) -> PoolDemand:
    """Return the demand of days, with all days before as history.

    name: One of `SERVICES` or `THIRDS`.
    first, end: Number of the first counted day, and of the day after the last, from 0.
    steps: Whether rates jump between two windows.
    """
    rates = _rates(name).between(0.0, float(end * SECONDS_PER_DAY))
    values = numpy.array(demand_per_minute(rates, _SEED, steps=steps))
    counted = first * MINUTES_PER_DAY
    capacity = float(values[counted:].max()) / REPLICAS
    return PoolDemand(values=values, first=counted, replicas=REPLICAS, capacity=capacity)


def _rates(name: str) -> RequestRates:
    if name in SERVICES:
        weeks = [RequestRates.read(_DATA / f"servegen_{name}{week}.csv") for week in ("", "_week_2")]
        return RequestRates(weeks[0].windows + weeks[1].windows)
    with (_DATA / "servegen_thirds.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    column = rows[0].index(name)
    return RequestRates.of([[row[0], row[column]] for row in rows[1:]], name)
