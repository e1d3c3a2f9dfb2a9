"""Each part of the forecast, by hand on short demands."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from inference_decisions.capacity_shift.demand_history import BIN_SECONDS, DemandHistory, Numbers
from inference_decisions.capacity_shift.deployment_rule import fill_gaps, forecast_demand
from inference_decisions.capacity_shift.shift_answer import DeploymentForecast
from inference_decisions.capacity_shift.shift_view import ShiftSettings

DAY = 86400 // BIN_SECONDS
#: The later horizon is 12 bins, the one that is soon 2.
EXACT = ShiftSettings(safety_percent=0.0, reclaim_seconds=600.0, admission_seconds=60.0)


def forecast(values: Numbers, settings: ShiftSettings = EXACT, *, shared: bool = False) -> DeploymentForecast:
    return forecast_demand(DemandHistory(100 * 86400, values), settings, shared=shared)


def flat(days: int = 2, demand: float = 20.0) -> Numbers:
    return numpy.full(days * DAY, demand)


def with_spikes(*bins: int) -> Numbers:
    """Return a flat demand that was twice as large in some bins, counted from the end."""
    values = flat()
    values[list(bins)] = 40.0
    return values


def after_a_long_rise(tail: list[float]) -> Numbers:
    """Return a demand that rose too slowly to widen a forecast, and fell to something else at the end."""
    values = flat()
    values[-DAY + 100 : -300] = numpy.linspace(20.0, 100.0, DAY - 400)
    values[-300:] = 100.0
    values[-len(tail) :] = tail
    return values


def test_a_flat_demand_stays_and_gets_the_margin() -> None:
    found = forecast(flat(), replace(EXACT, safety_percent=15.0))
    assert (found.level, found.season) == (20.0, 20.0)
    assert found.soon == pytest.approx(23.0)
    assert found.later == pytest.approx(23.0)


def test_a_slope_goes_on_as_long_as_the_forecast_looks_ahead() -> None:
    values: Numbers = 1000.0 + 10.0 * numpy.arange(2 * DAY, dtype=numpy.float64)
    assert forecast(values).soon == pytest.approx(values[-1] + 2 * 10.0)
    later = replace(EXACT, admission_seconds=240.0)
    assert forecast(values, later).soon == pytest.approx(values[-1] + 5 * 10.0)


def test_later_is_never_below_soon() -> None:
    values: Numbers = 1000.0 + 10.0 * numpy.arange(2 * DAY, dtype=numpy.float64)
    found = forecast(values, replace(EXACT, admission_seconds=3600.0))
    assert found.later == found.soon


def test_a_falling_demand_is_not_expected_to_fall_further() -> None:
    values = flat(demand=100.0)
    values[-DAY:] = numpy.linspace(100.0, 20.0, DAY)
    assert forecast(values).soon == pytest.approx(20.0)


def test_soon_misses_at_most_a_twentieth_of_a_percent_of_the_last_day() -> None:
    # Two forecasts for two bins said 20 where 40 came. The others sum up to 20 for each of 1,438 bins.
    total = 1438 * 20.0 + 2 * 40.0
    covered = (2 * 40.0 - 0.0005 * total) / 2
    assert forecast(with_spikes(-700)).soon == pytest.approx(covered)
    assert forecast(with_spikes(-DAY - 200)).soon == pytest.approx(20.0)


def test_a_demand_that_is_short_of_the_share_does_not_widen_the_forecast() -> None:
    values = flat()
    values[-700] = 25.0
    assert forecast(values).soon == pytest.approx(20.0)


def test_soon_looks_as_far_ahead_as_batch_needs_to_leave() -> None:
    # With an outcome of one bin, one forecast said 20 where 40 came.
    total = 1439 * 20.0 + 40.0
    found = forecast(with_spikes(-700), replace(EXACT, admission_seconds=0.0))
    assert found.soon == pytest.approx(40.0 - 0.0005 * total)


def test_later_misses_a_tenth_of_that() -> None:
    # Twelve forecasts for twelve bins said 20 where 40 came. For the ten after the spike, it is the level.
    total = 1428 * 20.0 + 12 * 40.0
    covered = (12 * 40.0 - 0.00005 * total) / 12
    assert forecast(with_spikes(-700)).later == pytest.approx(covered)
    assert forecast(with_spikes(-DAY - 200)).later == pytest.approx(20.0)


def test_later_begins_at_the_largest_of_ten_minutes() -> None:
    assert forecast(with_spikes(-10)).later > 75.0
    assert forecast(with_spikes(-11)).later < 40.0


def test_later_covers_the_largest_rise_where_batch_shares_the_deployment() -> None:
    values = flat(8)
    values[-5 * DAY : -5 * DAY + 60] = 70.0
    assert forecast(values, shared=True).later == pytest.approx(20.0 + 50.0)
    assert forecast(values).later == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("bins", "season"),
    [
        (-DAY - 30, 90.0),
        (-7 * DAY - 30, 90.0),
        (-7 * DAY - 31, 20.0),
        (-7 * DAY + 41, 90.0),
        (-7 * DAY + 42, 20.0),
        (-2 * DAY, 20.0),
    ],
)
def test_the_same_hour_of_yesterday_and_of_a_week_ago_is_covered(bins: int, season: float) -> None:
    values = flat(8)
    values[bins] = 90.0
    found = forecast(values)
    assert found.season == season
    assert found.later == pytest.approx(season)
    assert found.soon == pytest.approx(20.0)


def test_a_season_needs_a_day() -> None:
    assert forecast(flat()[: DAY - 1]).season is None
    assert forecast(flat()[:DAY]).season == 20.0


def test_a_collapsed_demand_is_expected_back() -> None:
    assert forecast(after_a_long_rise([29.0] * 60)).later == pytest.approx(100.0)
    assert forecast(after_a_long_rise([31.0] * 60)).later < 40.0
    # Two bins decide, so one bin with little demand is no collapse.
    assert forecast(after_a_long_rise([*[35.0] * 60, 20.0])).later == pytest.approx(100.0)
    assert forecast(after_a_long_rise([*[35.0] * 60, 26.0])).later < 40.0
    # After four hours it counts as the present demand.
    assert forecast(after_a_long_rise([29.0] * 241)).later < 40.0


def test_a_collapsed_demand_may_rise_soon_as_it_has_risen_before() -> None:
    values = flat(8, demand=100.0)
    values[-7 * DAY : -7 * DAY + 60] = 10.0
    values[-2:] = 10.0
    # A week ago it came back within a minute, by 90.
    assert forecast(values).soon == pytest.approx(100.0)
    values[-7 * DAY + 60 : -7 * DAY + 300] = numpy.linspace(10.0, 100.0, 240)
    assert forecast(values).soon < 12.0


def test_the_return_from_a_collapse_does_not_widen_the_forecast() -> None:
    values = flat(demand=100.0)
    values[-700:-640] = 10.0
    assert forecast(values).soon == pytest.approx(100.0)
    # The same rise without a collapse does.
    values[-700:-640] = 40.0
    assert forecast(values).soon > 150.0


def test_outcomes_that_were_not_measured_prove_nothing() -> None:
    values = flat()
    values[1::2] = numpy.nan
    values[2::4] = 40.0
    # Every window of two bins has a gap. The filled values are 40 at the end, and four bins before.
    assert forecast(values).soon == pytest.approx(40.0)


def test_forecasts_of_nothing_prove_nothing() -> None:
    values = flat(demand=0.0)
    values[-20:] = 30.0
    found = forecast(values)
    assert (found.soon, found.later) == (30.0, 30.0)


def test_gaps_are_filled_with_the_value_before_them_or_the_first() -> None:
    gap = float("nan")
    assert fill_gaps(numpy.array([gap, gap, 5.0, gap, 7.0, gap])).tolist() == [5.0, 5.0, 5.0, 5.0, 7.0, 7.0]
