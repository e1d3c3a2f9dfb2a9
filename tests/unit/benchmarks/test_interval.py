"""Intervals of means, and figures that say when they decide nothing."""

from __future__ import annotations

import pytest

from benchmarks.harness.figure import interval, interval_figures

TEN = [float(each) for each in range(1, 11)]


def test_the_interval_is_that_of_students_t() -> None:
    # Mean 5.5, standard deviation 3.02765, 2.262 x 3.02765 / sqrt(10) = 2.166.
    assert interval(TEN) == pytest.approx((3.334, 5.5, 7.666), abs=1e-3)


def test_sixteen_rounds_have_a_quantile_of_their_own() -> None:
    # Mean 8.5, standard deviation 4.76095, 2.131 x 4.76095 / sqrt(16) = 2.5364.
    assert interval([float(each) for each in range(1, 17)]) == pytest.approx((5.964, 8.5, 11.036), abs=1e-3)


def test_another_number_of_rounds_has_another_quantile() -> None:
    with pytest.raises(ValueError, match="got 9 rounds; an interval needs 10 or 16"):
        interval(TEN[:9])


@pytest.mark.parametrize(
    ("goal", "name", "met"),
    [(8.0, "it", True), (5.0, "it_inconclusive", False), (3.0, "it", False)],
)
def test_the_upper_end_meets_the_goal_or_the_name_says_that_it_is_open(
    goal: float, name: str, *, met: bool
) -> None:
    lower, middle, upper = interval_figures("it", TEN, "s", goal=goal)
    assert [each.name for each in (lower, middle, upper)] == ["it_lower", name, "it_upper"]
    assert (lower.met, middle.met, upper.met) == (None, None, met)
    assert all(each.simulated for each in (lower, middle, upper))
