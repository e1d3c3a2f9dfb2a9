"""The replay counts what it says: freed hours, the oracle's, and unmet demand, by hand on small demands."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates, demand_per_minute
from inference_decisions.capacity_shift.shift_replay import (
    PoolDemand,
    ShiftReplay,
    both_speeds,
    decide_at,
    places_only,
    reactive,
    replay,
    replicas_only,
    schedule_floors,
)
from inference_decisions.capacity_shift.shift_view import DeploymentState, ShiftSettings, ShiftState

SETTINGS = ShiftSettings(action="shift", reclaim_seconds=120)
DAY = 1440


def demand(values: list[float], first: int = 0) -> PoolDemand:
    return PoolDemand(values=numpy.array(values), first=first, replicas=4, capacity=10.0)


def test_lent_replicas_serve_only_when_they_are_back() -> None:
    rises = demand([10.0] * 5 + [40.0] * 5)
    floors = numpy.array([10.0] * 5 + [40.0] * 5)
    found = replicas_only(rises, floors, SETTINGS)
    # Decided at the end of bin 5, back two minutes later: bins 5, 6 and 7 have 10 of 40.
    assert found.unmet == pytest.approx(90.0 / 250.0)
    # Bins 0 to 5 free three quarters; from bin 6 on, what comes back is nobody's.
    assert found.freed_hours * 60 == pytest.approx(6 * 0.75)
    assert found.oracle_hours * 60 == pytest.approx(5 * 0.75)


def test_the_smallest_floor_is_never_lent() -> None:
    quiet = replace(demand([1.0] * (DAY + 60), DAY), minimum=3)
    settings = ShiftSettings(action="shift", reclaim_seconds=120)
    # Three of four replicas stay, from the first decision on that lowers the floor.
    assert replay(quiet, settings).floors.min() == 30.0
    assert replicas_only(quiet, numpy.zeros(DAY + 60), settings).freed_hours == pytest.approx(0.25)


def test_places_are_those_of_the_deployment() -> None:
    quiet = replace(demand([1.0] * (DAY + 60), DAY), places=10)
    state = None
    for number in range(DAY - 1, DAY + 20):
        decision = decide_at(quiet, number, SETTINGS, state)
        state = decision.state
    assert decision.deployments[0].batch_places == 9


def test_what_is_lent_is_gone_at_once() -> None:
    found = replicas_only(demand([40.0] * 6), numpy.array([40.0] * 3 + [10.0] * 3), SETTINGS)
    assert found.unmet == pytest.approx(2 * 30.0 / 240.0)
    assert found.freed_hours == 0.0


def test_floors_below_the_places_limit_what_is_served() -> None:
    steady = demand([20.0] * 6)
    kept = numpy.full(6, 20.0)
    served = both_speeds(steady, ShiftReplay(kept, numpy.full(6, 20.0)), SETTINGS)
    assert served.unmet == 0.0
    assert served.freed_of_oracle == pytest.approx(1.0)
    lagging = ShiftReplay(numpy.array([10.0] * 2 + [20.0] * 4), numpy.full(6, 10.0))
    # The places give back within a minute, replicas need two: bins 0 to 4 have 10 of 20.
    assert both_speeds(steady, lagging, SETTINGS).unmet == pytest.approx(50.0 / 120.0)


def test_places_come_back_within_a_minute_and_replicas_were_there() -> None:
    rises = demand([20.0] * 3 + [40.0] * 3)
    replayed = ShiftReplay(numpy.array([20.0] * 3 + [40.0] * 3), numpy.full(6, 40.0))
    found = both_speeds(rises, replayed, SETTINGS)
    # Decided at the end of bin 3, back a minute later: bins 3 and 4 have 20 of 40.
    assert found.unmet == pytest.approx(40.0 / 180.0)
    # Bins 0 to 3 free half; from bin 4 on, what comes back is nobody's.
    assert found.freed_hours * 60 == pytest.approx(4 * 0.5)


def test_places_alone_come_back_within_a_minute_and_are_not_whole_replicas() -> None:
    """By the shift's own rule, so that its rivals can have places too."""
    found = places_only(demand([15.0] * 5 + [40.0] * 5), numpy.array([15.0] * 5 + [40.0] * 5), SETTINGS)
    # Decided at the end of bin 5, back a minute later: bins 5 and 6 have 15 of 40.
    assert found.unmet == pytest.approx(50.0 / 275.0)
    # Bins 0 to 5 free 25 of 40.
    assert found.freed_hours * 60 == pytest.approx(6 * 0.625)


def test_a_replay_begins_with_a_whole_pool_before_the_first_minute() -> None:
    days = PoolDemand(values=numpy.full(DAY + 2, 100.0), first=DAY, replicas=20, capacity=10.0)
    kept = replay(days, replace(SETTINGS, safety_percent=2.0)).kept
    assert kept[DAY - 1 :].tolist() == pytest.approx([200.0, 150.0, 102.0])


def test_a_replay_remembers_the_day_a_week_ago() -> None:
    values = numpy.full(8 * DAY, 20.0)
    values[DAY + 5] = 150.0
    days = PoolDemand(values=values, first=8 * DAY, replicas=20, capacity=10.0)
    state = ShiftState(decided_at=(8 * DAY - 1) * 60, deployments={"replay": DeploymentState(floor=3)})
    (decided,) = decide_at(days, 8 * DAY - 1, replace(SETTINGS, safety_percent=2.0), state).deployments
    assert decided.floor == 16


def test_demand_above_the_pool_and_gaps_do_not_count() -> None:
    found = replicas_only(demand([80.0, float("nan"), 80.0]), numpy.full(3, 40.0), SETTINGS)
    assert found.unmet == 0.0
    assert found.pool_hours * 60 == pytest.approx(2)


def test_floors_are_whole_replicas_of_the_pool() -> None:
    steady = demand([30.0] * 6)
    rounded = replicas_only(steady, numpy.full(6, 0.1 * 3 * 100), SETTINGS)
    assert rounded.freed_hours * 60 == pytest.approx(6 * 0.25)
    assert replicas_only(steady, numpy.full(6, 90.0), SETTINGS).freed_hours == 0.0
    minimum = replicas_only(steady, numpy.zeros(6), SETTINGS)
    assert minimum.freed_hours * 60 == pytest.approx(6 * 0.75)
    # Rounded up to whole minutes: 70 s are two.
    rises, floors = demand([10.0] * 5 + [40.0] * 5), numpy.array([10.0] * 5 + [40.0] * 5)
    slow = replicas_only(rises, floors, replace(SETTINGS, reclaim_seconds=70))
    assert slow.unmet == replicas_only(rises, floors, SETTINGS).unmet


def test_a_pool_without_demand_misses_nothing_and_a_full_one_can_free_nothing() -> None:
    idle = replicas_only(demand([0.0] * 3), numpy.full(3, 10.0), SETTINGS)
    assert idle.unmet == 0.0
    full = replicas_only(demand([40.0] * 3), numpy.full(3, 40.0), SETTINGS)
    assert full.freed_of_oracle == 1.0


def test_hours_without_measurements_need_nothing() -> None:
    values = [10.0] * DAY + [99.0] * DAY
    values[5 * 60 : 6 * 60] = [float("nan")] * 60
    assert schedule_floors(demand(values, DAY))[DAY + 5 * 60] == 0.0
    assert numpy.isfinite(reactive(demand([10.0, float("nan"), 10.0]))).all()


def test_the_shift_frees_quiet_hours_and_serves_the_peak() -> None:
    minutes = numpy.arange(2 * DAY)
    values = 200.0 + 150.0 * numpy.sin(2 * numpy.pi * minutes / DAY)
    days = PoolDemand(values=values, first=DAY, replicas=36, capacity=10.0)
    settings = ShiftSettings(action="shift")
    found = both_speeds(days, replay(days, settings), settings)
    assert found.unmet < 0.001
    assert found.freed_of_oracle > 0.9


def test_a_replay_does_not_see_the_future() -> None:
    values = numpy.full(DAY + 40, 100.0)
    days = PoolDemand(values=values, first=DAY, replicas=20, capacity=10.0)
    changed = values.copy()
    changed[DAY + 20 :] = 190.0
    settings = ShiftSettings(action="shift")
    known, other = replay(days, settings), replay(replace(days, values=changed), settings)
    assert known.kept[: DAY + 20].tolist() == other.kept[: DAY + 20].tolist()
    assert known.floors[: DAY + 20].tolist() == other.floors[: DAY + 20].tolist()
    assert other.floors[-1] > known.floors[-1]


def test_a_schedule_knows_only_the_days_before() -> None:
    values = [10.0] * DAY + [99.0] * DAY
    values[5 * 60 + 7] = 35.0
    floors = schedule_floors(demand(values, DAY))
    assert floors[DAY + 4 * 60 + 44] == 10.0
    assert floors[DAY + 4 * 60 + 45] == 35.0
    assert floors[DAY + 5 * 60 + 59] == 35.0
    assert floors[DAY + 6 * 60] == 10.0


def test_an_autoscaler_holds_the_largest_of_ten_minutes_and_a_tenth() -> None:
    floors = reactive(demand([10.0, 20.0] + [10.0] * 12))
    assert floors[0] == pytest.approx(11.0)
    assert floors[1] == floors[10] == pytest.approx(22.0)
    assert floors[11] == pytest.approx(11.0)
    kept = reactive(demand([10.0, 20.0, 10.0, 10.0]), minutes=2, margin=1.5)
    assert kept == pytest.approx([15.0, 30.0, 30.0, 15.0])


def test_minutes_follow_the_rates() -> None:
    rates = RequestRates((RateWindow(0, 10.0, 0.0), RateWindow(600, 30.0, 0.0)))
    even = demand_per_minute(rates, 1)
    assert len(even) == 20
    assert even[4] == pytest.approx(10.0)
    assert even[9] == pytest.approx(10.0 + 20.0 * 270 / 600)
    assert demand_per_minute(rates, 1, steps=True) == [10.0] * 10 + [30.0] * 10
    noisy = RequestRates((RateWindow(0, 100.0, 2.0), RateWindow(60000, 100.0, 2.0)))
    found = numpy.array(demand_per_minute(noisy, 1))
    assert found.std() == pytest.approx(2.0 * (6000**0.5) / 60, rel=0.1)
