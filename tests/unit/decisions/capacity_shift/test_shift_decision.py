"""Each branch of the decision about a cell."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory
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

SHIFT = ShiftSettings(action="shift", safety_percent=2.0)
VIEW = DeploymentView(
    name="chat",
    pool="l40s",
    minimum=2,
    maximum=20,
    replicas=20,
    ready=20,
    capacity=10.0,
    accelerators=2,
    batch_places=100,
)
POOL = PoolView(name="l40s", accelerators=40)


def before(floor: int, *, lower_since: float | None = None, lent: float = 0.0, ago: float = 60) -> ShiftState:
    return ShiftState(
        decided_at=NOW - ago,
        deployments={"chat": DeploymentState(floor=floor, lower_since=lower_since, lent=lent)},
    )


def decided(
    history: DemandHistory | None,
    state: ShiftState | None,
    view: DeploymentView = VIEW,
    chosen: ShiftSettings = SHIFT,
    now: float = NOW,
) -> ShiftDecision:
    histories = {} if history is None else {"chat": history}
    return decide(histories, CellView((view,), (POOL,)), state, chosen, now)


def of(decision: ShiftDecision) -> DeploymentDecision:
    (deployment,) = decision.deployments
    return deployment


def codes(decision: ShiftDecision) -> set[str]:
    return {reason.code for reason in of(decision).reasons}


def test_figures_in_reasons_have_three_digits_and_no_exponent() -> None:
    """Red for a hand-over of 2.63333 min, or a demand of 1.235e+05."""
    view = replace(VIEW, handover_seconds=158.0, capacity=249.126, in_use=123.456)
    reasons = [each.text for each in of(decided(flat(123_456.7), before(4), view)).reasons]
    assert "within 2.63 min demand may reach" in reasons[0]
    assert "replicas of 249" in reasons[0]
    for text in reasons:
        for figure in re.findall(r"\d[\d,.e+]*\d", text):
            assert re.fullmatch(r"\d{1,3}(,\d{3})+|\d+|\d\.\d{1,2}|\d\d\.\d", figure), text


def test_a_rise_raises_the_floor_at_once() -> None:
    values = numpy.full(2 * DAY, 30.0)
    values[-1] = 120.0
    decision = decided(DemandHistory(NOW, values), before(4))
    assert of(decision).floor >= 13
    assert decision.carried_out


def test_a_lower_floor_has_to_suffice_for_a_while() -> None:
    first = decided(flat(30.0), before(15))
    assert (of(first).floor, codes(first) >= {"waits_to_lower"}) == (15, True)
    assert first.state.deployments["chat"].lower_since == NOW
    almost = decided(flat(30.0), before(15, lower_since=NOW - 599))
    assert of(almost).floor == 15
    after = decided(flat(30.0), before(15, lower_since=NOW - 600))
    assert of(after).floor == 14
    assert after.state.deployments["chat"].lower_since == NOW - 600, "the next minute need not wait again"


def test_a_need_in_between_starts_the_wait_again() -> None:
    needed = decided(flat(149.0), before(15, lower_since=NOW - 590))
    assert needed.state.deployments["chat"].lower_since is None


def test_the_floor_falls_by_a_share_of_itself_in_a_minute() -> None:
    decision = decided(
        flat(30.0),
        before(20, lower_since=NOW - 900),
        chosen=replace(SHIFT, lower_percent_per_minute=25.0),
    )
    assert (of(decision).floor, "lowers_slowly" in codes(decision)) == (15, True)


def test_a_second_decision_in_the_same_minute_lowers_nothing_again() -> None:
    decision = decided(flat(30.0), before(20, lower_since=NOW - 900, ago=1))
    assert of(decision).floor == 20


def test_what_batch_gets_grows_slowly_and_shrinks_at_once() -> None:
    grows = of(decided(flat(30.0), before(4, lent=0.1)))
    assert grows.lent == pytest.approx(0.35)
    assert grows.batch_places == 35
    assert "lends_slowly" in {reason.code for reason in grows.reasons}
    late = of(decided(flat(30.0), before(4, lent=0.1, ago=600)))
    assert late.lent == pytest.approx(0.35), "minutes that were missed are not made up for"
    shrinks = of(decided(flat(150.0), before(16, lent=0.8)))
    assert shrinks.lent == pytest.approx((200 - 153) / 200)


def test_only_ready_replicas_are_lent() -> None:
    decision = of(decided(flat(30.0), before(4, lent=0.9), replace(VIEW, ready=5)))
    assert decision.lent == pytest.approx((50 - 30.6) / 200)
    assert of(decided(flat(30.0), before(4, lent=0.9), replace(VIEW, ready=0))).batch_places == 0
    surplus = of(decided(flat(30.0), before(4, lent=0.9), replace(VIEW, ready=25)))
    assert surplus.lent == pytest.approx((200 - 30.6) / 200)


def test_it_is_said_when_nothing_is_free() -> None:
    assert "nothing_to_lend" in codes(decided(flat(199.0), before(20)))
    assert "nothing_to_lend" not in codes(decided(flat(30.0), before(4)))


def test_rounding_costs_neither_a_replica_nor_a_place() -> None:
    in_use = 0.1 * 3 * 100
    assert in_use > 30
    assert of(decided(flat(1.0), before(3), replace(VIEW, in_use=in_use))).floor == 3
    assert 0.29 * 100 < 29
    frozen = replace(SHIFT, freeze="frozen")
    assert of(decided(flat(30.0), before(4, lent=0.29), chosen=frozen)).batch_places == 29


def test_a_deployment_that_batch_does_not_share_lends_no_places() -> None:
    decision = of(decided(flat(30.0), before(4, lent=0.5), replace(VIEW, batch_places=0)))
    assert (decision.batch_places, decision.lent) == (0, 0.0)


def test_what_is_being_served_is_never_lent() -> None:
    decision = decided(flat(30.0), before(4, lent=0.9), replace(VIEW, in_use=120.0))
    assert of(decision).floor == 12
    assert of(decision).lent == pytest.approx((200 - 122.4) / 200)
    assert "in_use" in codes(decision)


def test_the_range_of_the_blueprint_holds() -> None:
    assert of(decided(flat(900.0), before(5))).floor == 20
    assert "most" in codes(decided(flat(900.0), before(5)))
    low = decided(flat(1.0), before(3, lower_since=NOW - 900))
    assert (of(low).floor, "least" in codes(low)) == (2, True)
    assert "least" not in codes(decided(flat(15.0), before(2)))
    assert of(decided(flat(30.0), before(500))).floor == 20


def test_missing_metrics_give_real_time_its_largest_known_demand() -> None:
    values = numpy.full(2 * DAY, 30.0)
    values[DAY] = 119.0
    values[-10:] = numpy.nan
    decision = decided(DemandHistory(NOW, values), before(4, lent=0.8))
    assert (of(decision).floor, of(decision).batch_places) == (13, 0)
    assert of(decided(DemandHistory(NOW, values), before(17))).floor == 17, "a higher floor does not fall"
    assert decision.pools[0].batch_accelerators == 0
    assert {reason.code for reason in decision.pools[0].reasons} == {"metrics_missing"}


def test_metrics_that_were_never_there_give_real_time_everything() -> None:
    for history in (None, flat(30.0, 20), DemandHistory(NOW, numpy.full(2 * DAY, numpy.nan))):
        decision = decided(history, before(4, lent=0.8), now=NOW + 3600)
        assert (of(decision).floor, of(decision).batch_places) == (20, 0)


def test_a_new_deployment_keeps_its_minimum_and_lends_nothing() -> None:
    decision = decided(flat(30.0, DAY - 1), None)
    assert (of(decision).floor, of(decision).batch_places, codes(decision)) == (2, 0, {"no_history"})
    assert of(decided(flat(30.0, DAY - 1), before(7))).floor == 7


def test_a_lost_state_begins_at_what_runs() -> None:
    decision = decided(flat(30.0), None, replace(VIEW, replicas=13))
    assert (of(decision).floor, of(decision).batch_places) == (13, 0)
    assert "first_decision" in codes(decision)


def test_short_gaps_count_as_the_demand_before_them() -> None:
    values = numpy.full(2 * DAY, 30.0)
    values[-2:] = numpy.nan
    values[DAY : DAY + 30] = numpy.nan
    decision = decided(DemandHistory(NOW, values), before(4, lent=0.9))
    assert of(decision).floor == of(decided(flat(30.0), before(4, lent=0.9))).floor
    assert of(decision).batch_places > 0


def test_frozen_changes_nothing() -> None:
    frozen = replace(SHIFT, freeze="frozen")
    decision = decided(flat(150.0), before(4, lent=0.5), chosen=frozen)
    assert (of(decision).floor, of(decision).batch_places) == (4, 50)
    assert not decision.carried_out
    assert codes(decision) == {"frozen"}
    unknown = of(decided(flat(150.0), None, chosen=frozen))
    assert (unknown.floor, unknown.batch_places) == (2, 0)


def test_an_unreadable_switch_lends_nothing_more_and_gives_back() -> None:
    unknown = replace(SHIFT, freeze="unknown")
    quiet = decided(flat(30.0), before(15, lower_since=NOW - 900, lent=0.2), chosen=unknown)
    assert (of(quiet).floor, of(quiet).batch_places) == (15, 20)
    assert [reason.code for reason in of(quiet).reasons].count("freeze_unknown") == 1
    busy = decided(flat(170.0), before(4, lent=0.5), chosen=unknown)
    assert of(busy).floor > 17
    assert of(busy).batch_places < 15
    assert busy.carried_out


def test_observing_decides_the_same_and_carries_nothing_out() -> None:
    observed = decided(flat(30.0), before(15), chosen=ShiftSettings())
    acted = decided(flat(30.0), before(15))
    assert not observed.carried_out
    assert of(observed).floor == of(acted).floor
    assert "observe" in codes(observed)


def test_a_clock_that_went_back_lowers_nothing_and_lends_nothing_more() -> None:
    decision = decided(flat(30.0), before(15, lower_since=NOW + 3000, lent=0.2, ago=-3600))
    assert of(decision).floor == 15
    assert of(decision).lent == pytest.approx(0.2)
    assert decision.state.deployments["chat"].lower_since == NOW
    assert "clock_back" in codes(decision)
    little = decided(flat(30.0), before(15, lower_since=NOW - 900, ago=-10))
    assert little.state.deployments["chat"].lower_since == NOW
    ahead = decided(flat(30.0), before(15, lower_since=NOW + 3000))
    assert ahead.state.deployments["chat"].lower_since == NOW


def test_demand_of_the_future_is_not_read() -> None:
    values = numpy.full(2 * DAY, 30.0)
    values[-5:] = 190.0
    ahead = DemandHistory(NOW + 5 * BIN_SECONDS, values)
    assert of(decided(ahead, before(4))).floor < 6
    only_ahead = DemandHistory(NOW + 5 * BIN_SECONDS, numpy.full(3, 30.0))
    assert len(only_ahead.until(NOW).values) == 0


def test_yesterdays_rise_is_expected_again() -> None:
    values = numpy.full(2 * DAY, 30.0)
    values[-DAY + 10 : -DAY + 200] = 150.0
    assert of(decided(DemandHistory(NOW, values), before(4))).floor == 16


def test_replicas_are_kept_while_a_demand_has_collapsed() -> None:
    values = numpy.full(2 * DAY, 100.0)
    values[-60:] = 0.0
    decision = of(decided(DemandHistory(NOW, values), before(12, lower_since=NOW - 3000, lent=0.9)))
    assert decision.floor >= 11
    assert decision.lent > 0.9


def test_batch_gets_of_a_pool_what_neither_floors_nor_replicas_need() -> None:
    low = before(4)
    assert decided(flat(30.0), low, replace(VIEW, replicas=9)).pools[0].batch_accelerators == 40 - 18
    high = decided(flat(150.0), low, replace(VIEW, replicas=4))
    assert high.pools[0].batch_accelerators == 40 - 2 * of(high).floor
    two = (VIEW, replace(VIEW, name="code"))
    decision = decide({"chat": flat(190.0), "code": flat(190.0)}, CellView(two, (POOL,)), low, SHIFT, NOW)
    assert decision.pools[0].batch_accelerators == 0
    assert [reason.code for reason in decision.pools[0].reasons] == ["pool_too_small"]
    (full,) = decided(flat(30.0), low, replace(VIEW, replicas=30)).pools
    assert (full.batch_accelerators, full.reasons[0].code) == (0, "nothing_to_lend")


def test_deployments_have_their_own_states_and_pools() -> None:
    state = ShiftState(
        decided_at=NOW - 60,
        deployments={"chat": DeploymentState(floor=5), "code": DeploymentState(floor=9)},
    )
    both = (replace(VIEW, replicas=5), replace(VIEW, name="code", pool="h200", replicas=9))
    histories = {"chat": flat(30.0), "code": flat(30.0)}
    decision = decide(histories, CellView(both, (POOL,)), state, SHIFT, NOW)
    assert [each.floor for each in decision.deployments] == [5, 9]
    assert decision.pools[0].batch_accelerators == 40 - 2 * 5


def test_record_and_state_are_json() -> None:
    decision = decided(flat(30.0), before(15))
    assert json.loads(json.dumps(decision.as_record()))["deployments"][0]["floor"] == 15
    item = json.loads(json.dumps(decision.state.as_item()))
    assert ShiftState.from_item(item) == decision.state


def test_samples_become_bins() -> None:
    history = DemandHistory.of_samples([(240, 4.0), (61, 2.0), (119, 4.0), (float("nan"), 1), (60, -1)])
    assert history.end == 240
    assert history.values.tolist()[0] == 3.0
    assert numpy.isnan(history.values[1])
    assert history.values.tolist()[2] == 4.0
    assert DemandHistory.of_samples([]).measured_at is None


demands = st.lists(st.one_of(st.floats(0, 500), st.just(float("nan"))), min_size=3, max_size=60).map(
    lambda tail: numpy.concatenate([numpy.tile(tail, 1 + 2 * DAY // len(tail)), tail])
)


@settings(max_examples=60, deadline=None)
@given(
    values=demands,
    floor=st.integers(-3, 40),
    lent=st.floats(0, 1),
    ready=st.integers(0, 25),
    in_use=st.one_of(st.none(), st.floats(0, 400)),
    ago=st.floats(-7200, 7200),
    freeze=st.sampled_from(["thawed", "frozen", "unknown"]),
)
def test_whatever_comes_real_time_keeps_what_it_uses(  # noqa: PLR0917 -- hypothesis names them
    values: numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]],
    floor: int,
    lent: float,
    ready: int,
    in_use: float | None,
    ago: float,
    freeze: str,
) -> None:
    chosen = replace(SHIFT, freeze=freeze)  # type: ignore[arg-type]
    view = replace(VIEW, ready=ready, in_use=in_use)
    state = before(floor, lent=lent, ago=ago)
    decision = decided(DemandHistory(NOW, values), state, view, chosen)
    found = of(decision)
    assert found.reasons
    if freeze == "frozen":
        assert not decision.carried_out
        return
    assert VIEW.minimum <= found.floor <= VIEW.maximum
    if found.forecast is not None:
        served = in_use if in_use is not None else found.forecast.level
        assert found.floor * VIEW.capacity >= min(served, VIEW.maximum * VIEW.capacity) - 1e-6
        left = min(ready, VIEW.maximum) * VIEW.capacity - found.lent * VIEW.maximum * VIEW.capacity
        assert found.lent == 0 or left >= served - 1e-6
    assert 0 <= found.batch_places <= VIEW.batch_places
