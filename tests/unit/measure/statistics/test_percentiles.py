"""Percentiles against an independent implementation of the same method."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.measure.statistics import percentile


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=60))
def test_it_is_the_inclusive_method_of_the_standard_library(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    for percent in (1, 50, 90, 99):
        assert percentile(values, percent) == pytest.approx(cuts[percent - 1], rel=1e-9, abs=1e-9)


def test_without_values_there_is_none() -> None:
    assert percentile([], 50) is None


def test_one_value_is_every_percentile() -> None:
    assert [percentile([7.0], percent) for percent in (0, 50, 99, 100)] == [7.0] * 4
