"""Weighted medians of groups, against the plain computation for each group."""

from __future__ import annotations

import numpy
import pytest

from inference_decisions.repairs.peer_comparison import group_medians, group_sums, spread_out


def plain(values: list[float], weights: list[float]) -> float:
    """Return the value at which half of the weight is reached; the middle of two if it is reached between."""
    pairs = sorted(zip(values, weights, strict=True))
    half, reached = sum(weights) / 2, 0.0
    for place, (value, weight) in enumerate(pairs):
        reached += weight
        if reached == pytest.approx(half):
            return (value + pairs[place + 1][0]) / 2
        if reached > half:
            return value
    raise AssertionError


@pytest.mark.parametrize("seed", range(5))
def test_each_group_has_its_own_median(seed: int) -> None:
    random = numpy.random.default_rng(seed)
    group = random.integers(0, 7, 60)
    values, weights = random.normal(0, 1, 60), random.integers(1, 5, 60).astype(float)
    found = group_medians(values, weights, group, 7)
    for number in range(7):
        of_group = group == number
        assert found[number] == pytest.approx(plain(values[of_group].tolist(), weights[of_group].tolist()))


def test_a_group_without_values_has_none() -> None:
    found = group_medians(numpy.array([1.0, 3.0]), numpy.ones(2), numpy.array([1, 1]), 3)
    assert numpy.isnan(found[[0, 2]]).all()
    assert found[1] == 2.0


def test_no_values_at_all() -> None:
    nothing = numpy.zeros(0)
    assert numpy.isnan(group_medians(nothing, nothing, numpy.zeros(0, numpy.int64), 2)).all()


def test_weights_decide() -> None:
    values, group = numpy.array([1.0, 2.0, 9.0]), numpy.zeros(3, numpy.int64)
    assert group_medians(values, numpy.array([1.0, 1.0, 5.0]), group, 1)[0] == 9.0
    assert group_medians(values, numpy.array([5.0, 1.0, 1.0]), group, 1)[0] == 1.0


def test_sums_and_places() -> None:
    assert group_sums(numpy.array([1.0, 2.0, 4.0]), numpy.array([0, 2, 0]), 3).tolist() == [5.0, 0.0, 2.0]
    usable = numpy.array([[True, False], [False, True]])
    matrix = spread_out(numpy.array([7.0, 8.0]), usable)
    assert matrix[usable].tolist() == [7.0, 8.0]
    assert numpy.isnan(matrix[~usable]).all()
