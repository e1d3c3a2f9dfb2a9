"""Metric math: the examples of AWS's document, and what alarms of this library use.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

from __future__ import annotations

import pytest

from inference_local.emulator.alarms.math_functions import ExpressionError, Series, parse
from inference_local.emulator.alarms.metric_math import MathInput, compute

Points = list[float | None]
PERIOD = 60
# Monday, 2026-11-23 09:00 UTC.
BEGIN = 1795424400


def series(points: Points) -> Series:
    return {BEGIN + PERIOD * at: float(value) for at, value in enumerate(points) if value is not None}


def computed(expression: str, *, length: int = 5, **metrics: Points) -> Points:
    """Compute an expression over metrics whose points are a minute apart."""
    starts = [float(BEGIN + PERIOD * at) for at in range(length)]
    given = MathInput({name: series(points) for name, points in metrics.items()}, {}, PERIOD, starts)
    found = compute(parse(expression), given)
    return [found.get(start) for start in starts]


METRIC1: Points = [1, 1, 0, 0, None]
METRIC2: Points = [30, None, 0, 0, 30]
METRIC3: Points = [0, 0, 20, None, 20]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("IF(metric1, metric2, metric3)", [30, 0, 20, None, None]),
        ("IF(metric1, 5, metric3)", [5, 5, 20, None, None]),
        ("IF(metric1, metric2, 5)", [30, 0, 5, 5, None]),
    ],
)
def test_the_tables_of_if(expression: str, expected: Points) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html#using-IF-expressions
    assert computed(expression, metric1=METRIC1, metric2=METRIC2, metric3=METRIC3) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("metric1 < metric2", [0, 0, 1, 0]),
        ("metric1 >= 30", [1, 0, 0, 0]),
        ("metric1 > 15 AND metric2 > 15", [1, 0, 0, 0]),
        ("metric1 > 15 && metric2 > 15", [1, 0, 0, 0]),
    ],
)
def test_the_table_of_comparisons(expression: str, expected: Points) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html#metric-math-syntax-operators
    found = computed(expression, length=4, metric1=[30, 20, 0, 0], metric2=[20, None, 20, None])
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("m1 + m2", [5, 6, 2]),  # missing values of one series are 0
        ("m1 / m2", [4, None, 0]),  # a point divided by zero is dropped
        ("m1 / PERIOD(m1) * 60", [4, 6, None]),
        ("-m1 ^ 2 + 1", [-15, -35, None]),
        ("5 * m1 - 2 * (m1 - 1)", [14, 20, None]),
        ("SUM(METRICS())", [5, 6, 2]),
        ("AVG(METRICS())", [2.5, 3, 1]),  # missing values are treated as 0
        ("MAX([m1, m2])", [4, 6, 2]),
        ("MIN(METRICS())", [1, 6, 2]),
        ('SUM(METRICS("2"))', [1, None, 2]),
        ("SUM(-[m1, m2])", [-5, -6, -2]),
        ("SUM(100 / [m1, m2])", [125, 100 / 6, 50]),
        ("m1 - MIN(m1)", [0, 2, None]),
        ("MAX(m1) / m1", [1.5, 1, None]),
        ("m1 / METRIC_COUNT(METRICS())", [2, 3, None]),
        ("DATAPOINT_COUNT(METRICS())", [2, 1, 1]),
        ("MIN(ABS([m1, m2]))", [1, 6, 2]),
        ("LOG10(m1 * 10 - m1 * 10)", [None, None, None]),
        ("TIME_SERIES(10)", [10, 10, 10]),
        # The condition is true in every period, and a point that is missing then counts as 0.
        ("IF(HOUR(m1) == 9 AND DAY(m1) < 6, m1)", [4, 6, 0]),
        ("IF(HOUR(m1) == 8, m1)", [None, None, None]),
    ],
)
def test_examples_of_functions(expression: str, expected: Points) -> None:
    found = computed(expression, length=3, m1=[4, 6, None], m2=[1, None, 2])
    assert found == [None if value is None else pytest.approx(value) for value in expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("FILL(m1, 10)", [10, 2, 10, 10, 8]),
        ("FILL(m1, REPEAT)", [None, 2, 2, 2, 8]),
        ("FILL(m1, LINEAR)", [None, 2, 4, 6, 8]),
        ("FILL(m1, m2)", [7, 2, 7, None, 8]),
        ("FILL(m1, MIN(m1))", [2, 2, 2, 2, 8]),
        ("SUM(FILL(METRICS(), 0))", [7, 9, 7, 0, 15]),
        ("RATE(m1)", [None, None, None, None, 6 / 180]),
        ("DIFF(m1)", [None, None, None, None, 6]),
        ("DIFF_TIME(m1)", [None, None, None, None, 180]),
        ("RUNNING_SUM(m1)", [None, 2, None, None, 10]),
    ],
)
def test_filling_and_differences(expression: str, expected: Points) -> None:
    found = computed(expression, m1=[None, 2, None, None, 8], m2=[7, 7, 7, None, 7])
    assert found == [None if value is None else pytest.approx(value) for value in expected]


def test_an_empty_metric_is_filled() -> None:
    assert computed("FILL(m1, 0)", length=2, m1=[None, None]) == [0, 0]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("AVG(m1)", "not a number"),
        ("METRICS()", "not an array"),
        ("m3 + 1", "'m3'"),
        ("m1 +", "ends too early"),
        ("m1 ? 2", r"'\?'"),
        ("(m1", "ends too early"),
        ("avg(m1)", "avg with 1 arguments"),
        ("ANOMALY_DETECTION_BAND(m1)", "ANOMALY_DETECTION_BAND .* not emulated"),
        ('SEARCH("x")', "SEARCH .* not emulated"),
        ("m1 'x'", "\"'x'\""),
    ],
)
def test_a_wrong_expression_is_refused(expression: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        computed(expression, m1=[1], m2=[2])
