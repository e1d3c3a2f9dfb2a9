"""What each way to run a shared pool needs, by hand on short demands."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from inference_blueprints.measure.shift_simulation.pool_simulation import (
    PoolDays,
    PoolOutcome,
    PoolRole,
    SimulatedBatch,
    pool_of_size,
    simulated_pool,
)
from inference_blueprints.resources import root
from inference_blueprints.serving.autoscaling.request_rates import RequestRates, demand_per_minute
from inference_decisions.capacity_shift.demand_history import Numbers

DAY = 1440


def role(name: str, values: Numbers, maximum: int = 10, **fields: object) -> PoolRole:
    found = PoolRole(
        name=name,
        values=values,
        capacity=10.0,
        accelerators=1,
        minimum=1,
        maximum=maximum,
        handover_seconds=120.0,
        new_node_seconds=600.0,
    )
    return replace(found, **fields)  # type: ignore[arg-type]


def batch(per_minute: Numbers, deadline: int, maximum: int = 30) -> SimulatedBatch:
    return SimulatedBatch(
        name="nightly",
        work=per_minute,
        deadline_minutes=deadline,
        accelerators=1,
        maximum=maximum,
        handover_seconds=120.0,
    )


def ways(days: PoolDays) -> dict[str, PoolOutcome]:
    return {each.way: each for each in simulated_pool(days)}


def steps(low: float, high: float, end: int = 18) -> Numbers:
    """Return a demand that is high from six o'clock on, with an hour of slope to either side."""
    hours = numpy.arange(7 * DAY) % DAY / 60.0
    return numpy.interp(hours, [0, 5, 6, end, end + 1, 24], [low, low, high, high, low, low])


def test_the_bound_is_the_peak_where_batch_fits_the_valley() -> None:
    values = steps(10.0, 100.0)
    # By night nine of ten accelerators are free, for eleven hours: 99 accelerator-hours a day.
    fits = PoolDays(
        roles=[role("chat", values)],
        batch=[batch(numpy.full(7 * DAY, 90.0 / 24.0), DAY)],
        learnt=DAY,
        tuned=4 * DAY,
    )
    found = ways(fits)
    assert found["clairvoyant bound"].accelerators == 10
    assert found["fixed fleets"].accelerators == 10 + 5, "a fleet for batch: 3.75 of 85 % of its time"
    assert 10 <= found["shift"].accelerators <= 12
    assert found["shift"].keeps
    more = replace(fits, batch=[batch(numpy.full(7 * DAY, 8.0), DAY)])
    # 192 accelerator-hours a day do not fit beside 10 x 24 - 99 hours that real time holds, of 14.
    assert ways(more)["clairvoyant bound"].accelerators == pytest.approx(14, abs=1)


def test_a_short_deadline_needs_a_larger_pool() -> None:
    """Red if work waits longer than its deadline allows."""
    values = steps(10.0, 100.0)
    needs = [
        ways(
            PoolDays(
                roles=[role("chat", values)],
                batch=[batch(numpy.full(7 * DAY, 4.0), deadline)],
                learnt=DAY,
                tuned=4 * DAY,
            )
        )["clairvoyant bound"].accelerators
        for deadline in (DAY, 60)
    ]
    assert needs[0] == 10
    assert needs[1] == pytest.approx(14, abs=0.5), "by day four accelerators must be there all the time"


def test_roles_that_peak_at_other_times_share_and_the_lower_priority_misses_first() -> None:
    day = steps(10.0, 100.0, end=15)
    night = numpy.roll(day, DAY // 2)
    days = PoolDays(
        roles=[role("day", day, priority=80), role("night", night, priority=100)],
        batch=[],
        learnt=DAY,
        tuned=4 * DAY,
    )
    found = ways(days)
    assert found["fixed fleets"].accelerators == 20
    assert found["clairvoyant bound"].accelerators <= 12
    small = pool_of_size(days, 6)
    assert small.missed["day"] > small.missed["night"] > 0.0
    assert pool_of_size(days, 1).missed == {"day": 1.0, "night": 1.0}, "the minimums do not fit"


def test_elastic_fleets_are_paid_by_the_started_hour_and_batch_by_its_use() -> None:
    flat = numpy.full(7 * DAY, 40.0)
    days = PoolDays(
        roles=[role("chat", flat)], batch=[batch(numpy.full(7 * DAY, 1.7), DAY)], learnt=DAY, tuned=4 * DAY
    )
    assert ways(days)["elastic fleets"].accelerators == pytest.approx(4.0 + 1.7 / 0.85, abs=0.01)


def test_a_way_that_misses_too_much_in_any_pool_says_so() -> None:
    """Red if a rival that gives up demand looks cheap."""
    values = numpy.full(7 * DAY, 10.0)
    values[5 * DAY : 5 * DAY + 300] = 100.0
    found = ways(PoolDays(roles=[role("chat", values)], batch=[], learnt=DAY, tuned=4 * DAY))
    assert not found["schedule"].keeps
    assert found["clairvoyant bound"].keeps


def test_the_week_of_two_services_needs_little_more_than_the_bound() -> None:
    """The goal, on recorded days that nothing was tuned on: 1.15 times the bound, and no rival needs less."""

    def week(name: str) -> Numbers:
        rates = RequestRates.read(root() / "benchmarks" / "data" / f"servegen_{name}.csv")
        return numpy.array(demand_per_minute(rates, 20261123))

    large, mid = week("m-large"), week("m-mid")
    roles = [
        role("large", large, 20, capacity=float(large.max()) / 20, handover_seconds=150.0, priority=100),
        role("mid", mid, 16, capacity=float(mid.max()) / 16, handover_seconds=150.0, priority=80),
    ]
    days = PoolDays(roles=roles, batch=[batch(numpy.full(7 * DAY, 16.0), DAY, 40)], learnt=DAY, tuned=4 * DAY)
    found = ways(days)
    shift = found.pop("shift")
    bound = found.pop("clairvoyant bound")
    assert shift.keeps
    assert shift.accelerators <= 1.15 * bound.accelerators
    assert all(shift.accelerators <= each.accelerators for each in found.values())
    assert bound.accelerators <= 0.82 * found["fixed fleets"].accelerators
