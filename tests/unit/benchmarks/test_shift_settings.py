"""The choice of the forecast's settings: what is allowed, what is as good, and what is left out."""

from __future__ import annotations

from dataclasses import asdict

import numpy
import pytest

from benchmarks.shift_settings import CANDIDATES, choose
from benchmarks.shifted_capacity import unmet_range
from inference_decisions.capacity_shift.replica_forecast import CHOSEN
from inference_decisions.capacity_shift.shift_replay import PoolDemand


@pytest.mark.parametrize(
    ("freed", "missed", "chosen"),
    [
        # The second set frees most, but misses too much on one day.
        ([[0.80, 0.80], [0.95, 0.95], [0.85, 0.85]], [[0.0, 0.0], [0.0, 0.0011], [0.001, 0.0]], 2),
        # The first two are as good, and the second one misses less.
        ([[0.9005, 0.9], [0.9, 0.9], [0.89, 0.89]], [[0.0005, 0.0], [0.0004, 0.0], [0.0, 0.0]], 1),
        # None is allowed.
        ([[0.9, 0.9], [0.8, 0.8]], [[0.0, 0.01], [0.0, 0.005]], 1),
    ],
)
def test_the_set_that_frees_most_without_a_day_that_misses_too_much(
    freed: list[list[float]], missed: list[list[float]], chosen: int
) -> None:
    assert choose(numpy.array(freed), numpy.array(missed)) == chosen


def test_what_is_shipped_was_a_candidate() -> None:
    """Red if a number is changed by hand to one that the procedure cannot choose."""
    assert all(getattr(CHOSEN, name) in numbers for name, numbers in CANDIDATES.items())
    assert set(CANDIDATES) == set(asdict(CHOSEN)), "each number is chosen"


def test_the_range_of_a_share_that_comes_from_one_hour_is_wide() -> None:
    """One hour of a day misses a tenth of its demand: it may as well be in no draw, or in several."""
    values = numpy.full(48 * 60, 10.0)
    values[30 * 60 : 31 * 60] = 11.0
    demand = PoolDemand(values=values, first=24 * 60, replicas=2, capacity=10.0)
    low, high = unmet_range(demand, numpy.full(48 * 60, 10.0), 150.0)
    assert low == 0.0
    assert 2.0 <= high / (60.0 / (24 * 600.0 + 60.0)) <= 4.0
