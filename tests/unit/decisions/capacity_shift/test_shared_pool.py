"""The division of a pool that models share by the hour, and the floors of its roles."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_decisions.capacity_shift.demand_history import DemandHistory
from inference_decisions.capacity_shift.pool_allocation import Allocation, RoleDemand, allocate
from inference_decisions.capacity_shift.replica_forecast import forecast_replicas
from inference_decisions.capacity_shift.shift_answer import DeploymentDecision, ShiftDecision
from inference_decisions.capacity_shift.shift_decision import decide
from inference_decisions.capacity_shift.shift_view import (
    CellView,
    DeploymentState,
    DeploymentView,
    PoolView,
    ShiftSettings,
    ShiftState,
)
from tests.unit.decisions.capacity_shift.known_demand import DAY, NOW, flat

SHIFT = ShiftSettings(action="shift")
#: Six nodes of eight accelerators, of which a fixed worker has four.
POOL = PoolView(name="b300", accelerators=44, shared=True, accelerators_per_node=8)


def role(name: str, **fields: object) -> DeploymentView:
    base = DeploymentView(
        name=name,
        pool="b300",
        minimum=0,
        maximum=40,
        replicas=0,
        ready=0,
        capacity=10.0,
        handover_seconds=150.0,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


MATCHING = role("matching", minimum=4, maximum=20, replicas=4, priority=100)
SHOPPER = role("shopper", minimum=6, maximum=12, replicas=6, priority=80)
OFFPEAK = role("offpeak", batch_only=True, tokens_per_accelerator_hour=2.0)


def decided(
    demands: Mapping[str, DemandHistory],
    *views: DeploymentView,
    state: ShiftState | None = None,
    chosen: ShiftSettings = SHIFT,
    pool: PoolView = POOL,
    now: float = NOW,
) -> ShiftDecision:
    """Decide. Without a state, the last decision was what runs."""
    known = state or ShiftState(
        decided_at=NOW - 60,
        deployments={each.name: DeploymentState(floor=each.replicas) for each in views},
    )
    return decide(demands, CellView(views, (pool,)), known, chosen, now)


def of(decision: ShiftDecision, name: str) -> DeploymentDecision:
    return next(each for each in decision.deployments if each.name == name)


def codes(decision: ShiftDecision, name: str) -> set[str]:
    return {reason.code for reason in of(decision, name).reasons}


def used(decision: ShiftDecision, views: tuple[DeploymentView, ...], *, floors: bool = False) -> int:
    sizes = {each.name: each.accelerators for each in views}
    return sum(
        (each.floor if floors else each.ceiling or 0) * sizes[each.name] for each in decision.deployments
    )


def test_batch_gets_what_real_time_leaves_and_nobody_exceeds_the_pool() -> None:
    views = (MATCHING, SHOPPER, OFFPEAK)
    quiet = decided({"matching": flat(38.0), "shopper": flat(58.0)}, *views)
    assert [each.floor for each in quiet.deployments] == [4, 6, 34]
    assert [each.ceiling for each in quiet.deployments] == [4, 6, 34], "KEDA must not race batch"
    assert quiet.pools[0].batch_accelerators == 34
    views = (MATCHING, SHOPPER, replace(OFFPEAK, replicas=34))
    busy = decided({"matching": flat(199.0), "shopper": flat(119.0)}, *views)
    assert [each.floor for each in busy.deployments] == [20, 12, 12]
    noon = decided(
        {"matching": flat(199.0), "shopper": flat(119.0)}, *views, pool=replace(POOL, accelerators=32)
    )
    assert of(noon, "offpeak").ceiling == 0, "a role that serves batch alone goes to zero"


@pytest.mark.parametrize(("floor", "places"), [(0, 0), (1, 1), (20, 8), (40, 16)])
def test_places_of_workers_of_batch_follow_their_number(floor: int, places: int) -> None:
    """Red if batch sends one request at a time to all workers that it was lent."""
    lent = replace(OFFPEAK, batch_places=16, replicas=floor)
    frozen = replace(SHIFT, freeze="frozen")
    assert of(decided({}, lent, chosen=frozen), "offpeak").batch_places == places


def test_batch_waits_until_workers_above_a_floor_have_ended() -> None:
    busy = replace(MATCHING, replicas=15)
    found = decided({"matching": flat(38.0), "shopper": flat(58.0)}, busy, SHOPPER, OFFPEAK)
    assert (of(found, "matching").ceiling, of(found, "offpeak").ceiling) == (4, 44 - 15 - 6)


def test_what_stops_comes_first_and_batch_stops_before_real_time() -> None:
    views = (replace(MATCHING, replicas=15), replace(SHOPPER, replicas=6), replace(OFFPEAK, replicas=30))
    found = decided({"matching": flat(38.0), "shopper": flat(119.0)}, *views)
    assert sorted(found.deployments, key=lambda each: each.drain_order or 0) == [
        of(found, "offpeak"),
        of(found, "matching"),
        of(found, "shopper"),
    ]


def test_a_pool_that_is_too_small_serves_by_priority_and_says_who_lost() -> None:
    small = replace(POOL, accelerators=24)
    found = decided({"matching": flat(180.0), "shopper": flat(118.0)}, MATCHING, SHOPPER, OFFPEAK, pool=small)
    assert [each.floor for each in found.deployments] == [18, 6, 0]
    assert "gives_way" in codes(found, "shopper")
    assert "gives_way" not in codes(found, "matching")
    assert "12 replicas are wanted, and 6 fit" in str(of(found, "shopper").reasons)
    assert [reason.code for reason in found.pools[0].reasons] == ["nothing_to_lend", "pool_too_small"]


def test_roles_of_one_priority_lose_the_same_share() -> None:
    twins = (replace(MATCHING, maximum=40), replace(SHOPPER, maximum=40, priority=100))
    small = replace(POOL, accelerators=30)
    found = decided({"matching": flat(399.0), "shopper": flat(199.0)}, *twins, pool=small)
    assert [each.floor for each in found.deployments] == [20, 10]


def test_without_metrics_known_demand_comes_before_unknown() -> None:
    """All floors at their maximum do not fit a pool that is overcommitted on purpose."""
    views = (replace(MATCHING, replicas=9), SHOPPER, replace(OFFPEAK, replicas=20))
    small = replace(POOL, accelerators=24)
    found = decided({"shopper": flat(118.0)}, *views, pool=small)
    assert [each.floor for each in found.deployments] == [12, 12, 0]
    assert codes(found, "matching") >= {"metrics_missing", "gives_way"}
    assert found.pools[0].reasons[0].code == "metrics_missing"
    none = decided({}, *views, pool=small)
    assert [each.floor for each in none.deployments] == [18, 6, 0], "then priority, down to the minimums"


def test_a_large_worker_needs_the_accelerators_of_one_node() -> None:
    """TP 4 does not fit on two nodes with two accelerators each."""
    wide = replace(SHOPPER, accelerators=4, minimum=0, maximum=20, replicas=0)
    two = PoolView(name="b300", accelerators=20, shared=True, accelerators_per_node=10)
    found = decided({"shopper": flat(199.0)}, wide, OFFPEAK, pool=two)
    assert (of(found, "shopper").floor, of(found, "offpeak").floor) == (4, 4)
    double = replace(SHOPPER, accelerators=16, minimum=0, maximum=20, replicas=0)
    assert of(decided({"shopper": flat(199.0)}, double), "shopper").floor == 2, "whole nodes"


@pytest.mark.parametrize(
    ("always", "batch", "handover"),
    [(None, 0, 150.0), (44, 0, 150.0), (16, 0, 900.0), (16, 26, 900.0), (16, 31, 150.0)],
)
def test_a_role_looks_as_far_ahead_as_a_node_takes_only_while_one_is_missing(
    always: int | None, batch: int, handover: float
) -> None:
    """Red if nodes that run count as missing, or if demand outgrows the nodes before another one serves."""
    minutes = numpy.arange(3 * DAY)
    values = 100.0 + 60.0 * numpy.sin(2 * numpy.pi * minutes / DAY) + 20.0 * numpy.sin(minutes / 17.0)
    # Its six replicas and those of batch use one node after the other, of eight accelerators.
    view = replace(MATCHING, maximum=30, replicas=6, new_node_seconds=900.0)
    lent = replace(OFFPEAK, maximum=40, replicas=batch)
    history = DemandHistory(NOW, values)
    found = decided({"matching": history}, view, lent, pool=replace(POOL, always=always))
    known = decided({"matching": history}, replace(view, handover_seconds=handover), lent)
    assert of(found, "matching").forecast == of(known, "matching").forecast
    assert (
        known.deployments[0].forecast
        != decided({"matching": history}, replace(view, handover_seconds=1050.0 - handover), lent)
        .deployments[0]
        .forecast
    ), "the two times differ"


def test_batch_gets_first_what_deadlines_need_and_then_what_does_most() -> None:
    slow = replace(OFFPEAK, name="slow", maximum=30, tokens_per_accelerator_hour=1.0, deadline_replicas=5)
    found = decided({"matching": flat(38.0)}, MATCHING, slow, OFFPEAK)
    assert (of(found, "slow").floor, of(found, "offpeak").floor) == (5, 35)
    late = replace(slow, deadline_replicas=30, maximum=30)
    small = decided({"matching": flat(38.0)}, MATCHING, late, pool=replace(POOL, accelerators=20))
    assert "gives_way" in codes(small, "slow")


def test_a_role_keeps_what_it_has_while_nobody_says_what_its_deadlines_need() -> None:
    """Red if silence counts as no need, or as all that it may have."""
    silent = replace(OFFPEAK, deadline_replicas=None)
    fast = replace(OFFPEAK, name="fast", tokens_per_accelerator_hour=9.0, deadline_replicas=30)
    known = {"matching": DeploymentState(floor=4), "offpeak": DeploymentState(floor=15)}
    state = ShiftState(decided_at=NOW - 60, deployments={**known, "fast": DeploymentState(floor=0)})
    found = decided({"matching": flat(38.0)}, MATCHING, replace(silent, priority=1), fast, state=state)
    assert (of(found, "offpeak").floor, of(found, "fast").floor) == (15, 25)
    assert codes(found, "offpeak") == {"deadlines_unknown"}
    higher = decided({"matching": flat(38.0)}, MATCHING, silent, replace(fast, priority=1), state=state)
    assert (of(higher, "offpeak").floor, of(higher, "fast").floor) == (10, 30), "a known need of a higher one"
    huge = decided({"matching": flat(38.0)}, MATCHING, replace(OFFPEAK, deadline_replicas=10**9))
    assert of(huge, "offpeak").floor == 40
    assert "its deadlines need 1000000000, and its maximum is 40" in of(huge, "offpeak").reasons[0].text


def test_batch_keeps_what_it_got_for_five_handovers() -> None:
    """Else two models of batch swap workers each minute, and serve nobody."""
    fast = replace(OFFPEAK, name="fast", tokens_per_accelerator_hour=9.0)
    views = (MATCHING, replace(OFFPEAK, replicas=40), fast)

    def after(seconds: float) -> ShiftDecision:
        held = DeploymentState(floor=40, grown_at=NOW - seconds)
        known = {"matching": DeploymentState(floor=4), "offpeak": held, "fast": DeploymentState(floor=0)}
        state = ShiftState(decided_at=NOW - 60, deployments=known)
        return decided({"matching": flat(38.0)}, *views, state=state)

    assert of(after(5 * 150 - 1), "offpeak").floor == 40
    moved = after(5 * 150)
    assert (of(moved, "offpeak").floor, of(moved, "fast").floor) == (0, 40)
    assert moved.state.deployments["fast"].grown_at == NOW


def test_frozen_unreadable_lost_and_early_decisions_keep_their_rules() -> None:
    views = (MATCHING, SHOPPER, replace(OFFPEAK, replicas=10))
    demands = {"matching": flat(38.0), "shopper": flat(58.0)}
    known = ShiftState(
        decided_at=NOW - 60,
        deployments={
            "matching": DeploymentState(floor=7, ceiling=8),
            "shopper": DeploymentState(floor=6, ceiling=6),
            "offpeak": DeploymentState(floor=12, ceiling=12),
        },
    )
    frozen = decided(demands, *views, state=known, chosen=replace(SHIFT, freeze="frozen"))
    assert [(each.floor, each.ceiling) for each in frozen.deployments] == [(7, 8), (6, 6), (12, 12)]
    assert frozen.state.deployments == known.deployments
    unknown = decided(demands, *views, state=known, chosen=replace(SHIFT, freeze="unknown"))
    assert [each.floor for each in unknown.deployments] == [7, 6, 12], "nothing more is lent"
    back = decided(demands, *views, state=replace(known, decided_at=NOW + 600))
    assert [each.floor for each in back.deployments] == [7, 6, 12], "the clock went back"
    lost = decide(demands, CellView(views, (POOL,)), None, SHIFT, NOW)
    assert [each.floor for each in lost.deployments] == [4, 6, 10], "it begins at what runs"
    early = decided({"matching": flat(38.0, 60), "shopper": flat(58.0)}, *views, state=known)
    assert of(early, "offpeak").floor == 0, "nothing is lent before a day of demand is known"
    twice = decided(demands, *views, state=replace(known, decided_at=NOW - 1))
    assert twice.deployments == decided(demands, *views, state=known).deployments
    record = json.loads(json.dumps(twice.state.as_item()))
    assert ShiftState.from_item(record) == twice.state


def test_without_batch_ceilings_leave_the_rest_to_the_load() -> None:
    found = decided({"matching": flat(38.0), "shopper": flat(58.0)}, MATCHING, SHOPPER)
    assert [(each.floor, each.ceiling) for each in found.deployments] == [(4, 20), (6, 12)]


def test_records_of_earlier_versions_are_read() -> None:
    old = {"decided_at": 1, "deployments": {"chat": {"floor": 3, "lower_since": None, "lent": 0.5}}}
    assert ShiftState.from_item(old).deployments["chat"] == DeploymentState(floor=3, lent=0.5)


sizes = st.sampled_from([1, 2, 4, 8])
roles = st.lists(
    st.tuples(
        sizes,
        st.integers(0, 3),
        st.integers(0, 30),
        st.integers(0, 30),
        st.booleans(),
        st.sampled_from([10, 50, 90]),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=5,
)


def demand_of(name: str, drawn: tuple[int, int, int, int, bool, int, int]) -> RoleDemand:
    size, minimum, more, wanted, batch, priority, replicas = drawn
    view = role(
        name,
        accelerators=size,
        minimum=minimum,
        maximum=max(1, minimum + more),
        batch_only=batch,
        priority=priority,
        replicas=replicas,
    )
    due = replicas if batch else 0
    return RoleDemand(view=view, wanted=min(max(minimum, wanted), view.maximum), due=due)


def fits(numbers: Mapping[str, int], found: list[RoleDemand], pool: PoolView) -> bool:
    """Return whether whole replicas fit whole nodes. Sizes divide each other, so it is a matter of counts."""
    nodes = [8] * (pool.accelerators // 8) + ([pool.accelerators % 8] if pool.accelerators % 8 else [])
    for size in (8, 4, 2, 1):
        for _ in range(sum(numbers[each.view.name] for each in found if each.view.accelerators == size)):
            place = next((number for number, free in enumerate(nodes) if free >= size), None)
            if place is None:
                return False
            nodes[place] -= size
    return True


@settings(max_examples=120, deadline=None)
@given(drawn=roles, accelerators=st.integers(1, 70))
def test_whatever_is_wanted_pool_nodes_minimums_and_priorities_hold(
    drawn: list[tuple[int, int, int, int, bool, int, int]], accelerators: int
) -> None:
    pool = replace(POOL, accelerators=accelerators)
    found = [demand_of(str(number), each) for number, each in enumerate(drawn)]
    result = allocate(pool, found)
    assert fits(result.ceilings, found, pool)
    minimums = {each.view.name: each.view.minimum for each in found}
    for each in found:
        name = each.view.name
        assert 0 <= result.floors[name] <= result.ceilings[name] <= each.view.maximum
        assert result.floors[name] >= minimums[name] or not fits(minimums, found, pool)
        if each.view.batch_only or result.floors[name] >= each.wanted:
            continue
        assert [reason.code for reason in result.reasons[name]] == ["gives_way"]
        # One replica more does not fit, even without what lower priorities and batch have above minimums.
        higher = {
            other.view.name: result.floors[other.view.name]
            if not other.view.batch_only and other.view.priority >= each.view.priority
            else min(result.floors[other.view.name], minimums[other.view.name])
            for other in found
        }
        assert not fits({**higher, name: result.floors[name] + 1}, found, pool)
    assert sorted(result.order.values()) == list(range(len(found)))


@settings(max_examples=60, deadline=None)
@given(drawn=roles, accelerators=st.integers(8, 60), more=st.integers(1, 3))
def test_a_larger_pool_takes_from_nobody_in_real_time(
    drawn: list[tuple[int, int, int, int, bool, int, int]], accelerators: int, more: int
) -> None:
    # One role per priority: equal shares of several are rounded.
    live = [(1, *each[1:4], False, 100 - number, each[6]) for number, each in enumerate(drawn)]
    found = [demand_of(str(number), each) for number, each in enumerate(live)]

    def floors(size: int) -> Allocation:
        return allocate(replace(POOL, accelerators=size), found)

    before, after = floors(accelerators), floors(accelerators + more)
    assert all(before.floors[name] <= number for name, number in after.floors.items())


@pytest.mark.parametrize("handover", [30.0, 150.0, 600.0])
def test_the_floors_of_a_replay_are_those_of_each_decision(handover: float) -> None:
    """The vectors must not see the future, and must be what a platform decides."""
    minutes = numpy.arange(3 * DAY)
    values = 100.0 + 60.0 * numpy.sin(2 * numpy.pi * minutes / DAY) + 20.0 * numpy.sin(minutes / 17.0)
    options = {"handover_seconds": handover, "capacity": 10.0, "minimum": 1, "maximum": 30}
    whole = forecast_replicas(values, **options).replicas  # type: ignore[arg-type]
    for end in (DAY + 7, 2 * DAY, 3 * DAY):
        assert forecast_replicas(values[:end], **options).replicas.tolist() == whole[:end].tolist()  # type: ignore[arg-type]
    view = replace(MATCHING, minimum=1, maximum=30, handover_seconds=handover, priority=1)
    found = decided({"matching": DemandHistory(NOW, values)}, view)
    assert of(found, "matching").floor == whole[-1]


def test_a_floor_falls_only_when_a_lower_one_has_sufficed_for_a_handover() -> None:
    """No oscillation: a dip that is shorter than a hand-over lends nothing."""
    values = numpy.full(2 * DAY, 100.0)
    values[-10:-8] = 40.0
    floors = forecast_replicas(values, handover_seconds=150.0, capacity=10.0, minimum=1, maximum=20).replicas
    assert floors[-14:].min() >= 10
    values[-8:] = 40.0
    floors = forecast_replicas(values, handover_seconds=150.0, capacity=10.0, minimum=1, maximum=20).replicas
    assert floors[-1] < 10
    lent = [number for number, _ in itertools.groupby(floors[-14:])]
    assert lent == sorted(lent, reverse=True)


def test_a_collapse_lends_nothing_and_a_night_does() -> None:
    """Clients that cannot reach a service come back at once; those who sleep do not."""
    values = numpy.full(2 * DAY, 100.0)
    options = {"handover_seconds": 150.0, "capacity": 10.0, "minimum": 1, "maximum": 20}
    values[-60:] = 0.0
    assert forecast_replicas(values, **options).replicas[-1] == 10  # type: ignore[arg-type]
    values[-60:] = 25.0
    assert forecast_replicas(values, **options).replicas[-1] < 10  # type: ignore[arg-type]


def test_floors_miss_no_more_than_half_of_the_goal_of_the_days_they_know() -> None:
    """Whole replicas are counted: a factor for fractions of a replica would be too large."""
    chance = numpy.random.default_rng(7)
    values = numpy.abs(200.0 + numpy.cumsum(chance.normal(0.0, 4.0, 4 * DAY)))
    floors = forecast_replicas(
        values, handover_seconds=150.0, capacity=10.0, minimum=1, maximum=math.ceil(values.max() / 10)
    ).replicas
    held = numpy.array([floors[max(0, end - 4) : end].min() for end in range(1, len(values))]) * 10.0
    missing = numpy.maximum(0.0, values[1:] - held)[-DAY:].sum() / values[-DAY:].sum()
    assert missing < 0.001
