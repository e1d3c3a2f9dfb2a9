"""Evaluates alarms on samples at given times.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from inference_local.emulator.alarms.alarm_definition import MetricStat, parse_alarm
from inference_local.emulator.alarms.metric_alarms import AlarmEvaluation, evaluate
from inference_local.emulator.alarms.period_statistics import (
    MetricSample,
    has_few_samples,
    statistic_of,
)

# 2026-11-23 09:00:00 UTC
NOW = 1795424400.0
MINUTE = 60.0
ALARM: dict[str, Any] = {
    "AlarmName": "slow",
    "Namespace": "Tests",
    "MetricName": "Latency",
    "Dimensions": [{"Name": "Worker", "Value": "a"}],
    "Statistic": "Average",
    "Period": 60,
    "EvaluationPeriods": 3,
    "DatapointsToAlarm": 3,
    "Threshold": 3,
    "ComparisonOperator": "GreaterThanThreshold",
}


class Metrics:
    """Samples of metrics. One value per minute, before NOW."""

    def __init__(self) -> None:
        self.samples: dict[tuple[str, tuple[tuple[str, str], ...]], list[MetricSample]] = {}

    def put(
        self, *values: float | None, name: str = "Latency", worker: str = "a", unit: str = "None"
    ) -> None:
        """Put a value in each of the last minutes, in order."""
        samples = self.samples.setdefault((name, (("Worker", worker),)), [])
        for at, value in enumerate(values):
            if value is not None:
                time = NOW - MINUTE * (len(values) - at) + 1
                samples.append(MetricSample(time, 1, value, value, value, unit))

    def source(self, metric: MetricStat, start: float, end: float) -> Sequence[MetricSample]:
        samples = self.samples.get((metric.name, metric.dimensions), [])
        return [sample for sample in samples if start <= sample.at < end]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def state(metrics: Metrics, at: float = NOW, **changes: Any) -> str | None:
    found = evaluated(metrics, at, **changes)
    return found.state if found else None


def evaluated(metrics: Metrics, at: float = NOW, **changes: Any) -> AlarmEvaluation | None:
    return evaluate(parse_alarm({**ALARM, **changes}), metrics.source, at)


def test_the_figure_of_the_document(metrics: Metrics) -> None:
    # 3 of 3 above 3 in the third to the fifth period, below in the sixth, above once in the ninth.
    metrics.put(2, 2, 4, 5, 4, 2, 1, 2, 4, 2)
    found = [state(metrics, NOW - MINUTE * (10 - period)) for period in range(3, 11)]
    assert found == ["OK", "OK", "ALARM", "OK", "OK", "OK", "OK", "OK"]


def test_a_period_of_five_minutes_moves_every_minute(metrics: Metrics) -> None:
    # "at the end of minute 5 the alarm evaluates based on data from minutes 1 to 5. Then at the end of
    # minute 6, the alarm is evaluated based on the data from minutes 2 to 6."
    metrics.put(100, 1, 1, 1, 1, 1)
    changes = {"Period": 300, "EvaluationPeriods": 1, "DatapointsToAlarm": 1, "Threshold": 10}
    assert state(metrics, NOW - MINUTE, **changes) == "ALARM"
    assert state(metrics, NOW - 1, **changes) == "ALARM"
    assert state(metrics, NOW, **changes) == "OK"


def test_an_open_period_does_not_count(metrics: Metrics) -> None:
    metrics.put(1, 1, 1)
    metrics.samples["Latency", (("Worker", "a"),)].append(MetricSample(NOW + 30, 1, 9, 9, 9))
    single = {"EvaluationPeriods": 1, "DatapointsToAlarm": 1}
    assert state(metrics, NOW + 59, **single) == "OK"
    assert state(metrics, NOW + 60, **single) == "ALARM"


def test_periods_of_ten_seconds_end_every_ten_seconds(metrics: Metrics) -> None:
    metrics.samples["Latency", (("Worker", "a"),)] = [MetricSample(NOW + 12, 1, 9, 9, 9)]
    single = {
        "EvaluationPeriods": 1,
        "DatapointsToAlarm": 1,
        "Period": 10,
        "TreatMissingData": "notBreaching",
    }
    assert [state(metrics, NOW + at, **single) for at in (19, 20)] == ["OK", "ALARM"]
    assert parse_alarm({**ALARM, "Period": 10}).every_seconds == 10
    assert parse_alarm({**ALARM, "Period": 300}).every_seconds == 60
    assert parse_alarm({**ALARM, "Period": 3600, "EvaluationPeriods": 25}).every_seconds == 3600


def test_m_of_n_need_not_be_consecutive(metrics: Metrics) -> None:
    metrics.put(4, 1, 4)
    assert state(metrics, DatapointsToAlarm=2) == "ALARM"
    assert state(metrics, DatapointsToAlarm=3) == "OK"


def test_another_dimension_is_another_metric(metrics: Metrics) -> None:
    metrics.put(9, 9, 9, worker="b")
    assert state(metrics) == "INSUFFICIENT_DATA"
    assert state(metrics, Dimensions=[]) == "INSUFFICIENT_DATA"
    assert state(metrics, Dimensions=[{"Name": "Worker", "Value": "b"}]) == "ALARM"


def test_a_unit_selects_samples(metrics: Metrics) -> None:
    metrics.put(9, 9, 9, unit="Seconds")
    assert state(metrics, Unit="Milliseconds") == "INSUFFICIENT_DATA"
    assert state(metrics, Unit="Seconds") == state(metrics) == "ALARM"


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("GreaterThanThreshold", "OK"),
        ("GreaterThanOrEqualToThreshold", "ALARM"),
        ("LessThanThreshold", "OK"),
        ("LessThanOrEqualToThreshold", "ALARM"),
    ],
)
def test_comparisons(metrics: Metrics, comparison: str, expected: str) -> None:
    metrics.put(3, 3, 3)
    assert state(metrics, ComparisonOperator=comparison) == expected


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        *(("Sum", 10), ("Average", 2.5), ("Minimum", 1), ("Maximum", 4), ("SampleCount", 4)),
        *(("p50", 2.5), ("p0", 1), ("p100", 4), ("p90", 3.7)),
    ],
)
def test_statistics(statistic: str, expected: float) -> None:
    values = [MetricSample(NOW, 1, value, value, value) for value in (3.0, 1.0, 4.0, 2.0)]
    assert statistic_of(values, statistic) == pytest.approx(expected)


def test_percentiles_need_all_values_and_none_below_zero() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#Percentiles
    assert statistic_of([MetricSample(NOW, 2, 6, 1, 5)], "p90") is None
    assert statistic_of([MetricSample(NOW, 2, 6, 3, 3)], "p90") == 3
    assert statistic_of([MetricSample(NOW, 1, -1, -1, -1)], "p90") is None


def test_few_samples_of_a_percentile(metrics: Metrics) -> None:
    # "this setting would be used if there were fewer than 1000 samples for an alarm on a p99 percentile"
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/percentiles-with-low-samples.html
    assert [has_few_samples("p99", count) for count in (999, 1000)] == [True, False]
    assert [has_few_samples("p90", count) for count in (99, 100)] == [True, False]
    assert [has_few_samples("p25", count) for count in (39, 40)] == [True, False]
    metrics.put(9, 9, 9)
    percentile: dict[str, Any] = {"Statistic": None, "ExtendedStatistic": "p99"}
    assert state(metrics, **percentile) == "ALARM"
    assert state(metrics, **percentile, EvaluateLowSampleCountPercentile="ignore") is None


def math(expression: str, **changes: Any) -> dict[str, Any]:
    metrics = [
        {
            "Id": name,
            "ReturnData": False,
            "MetricStat": {
                "Metric": {
                    "Namespace": "Tests",
                    "MetricName": metric,
                    "Dimensions": [{"Name": "Worker", "Value": "a"}],
                },
                "Period": 60,
                "Stat": "Sum",
            },
        }
        for name, metric in (("errors", "Errors"), ("requests", "Requests"))
    ]
    watched = {"Id": "e1", "Expression": expression, "ReturnData": True}
    single = ("Namespace", "MetricName", "Dimensions", "Statistic", "Period")
    plain = {name: value for name, value in ALARM.items() if name not in single}
    return {**plain, "Metrics": [watched, *metrics], **changes}


def test_metric_math_decides(metrics: Metrics) -> None:
    metrics.put(1, 4, 4, 4, name="Errors")
    metrics.put(100, 100, 100, 100, name="Requests")
    found = evaluate(parse_alarm(math("100 * errors / requests")), metrics.source, NOW)
    assert found is not None
    assert found.state == "ALARM"
    assert "3 out of the last 3 datapoints [4.0 (23/11/26 08:59:00), 4.0 (" in found.reason
    assert "statistic" not in json.loads(found.reason_data)


def test_filled_metrics_are_not_missing(metrics: Metrics) -> None:
    alarm = parse_alarm(math("FILL(errors, 0)", TreatMissingData="breaching"))
    found = evaluate(alarm, metrics.source, NOW)
    assert found is not None
    assert found.state == "OK"


@pytest.mark.parametrize(
    ("values", "changes", "reason"),
    [
        # The words of the first two are those of
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
        (
            [99.5],
            {"EvaluationPeriods": 1, "DatapointsToAlarm": 1, "Threshold": 50},
            "Threshold Crossed: 1 out of the last 1 datapoints [99.5 (23/11/26 08:59:00)] was greater than "
            "the threshold (50.0) (minimum 1 datapoint for OK -> ALARM transition).",
        ),
        (
            [0.25],
            {"EvaluationPeriods": 1, "DatapointsToAlarm": 1, "Threshold": 50},
            "Threshold Crossed: 1 out of the last 1 datapoints [0.25 (23/11/26 08:59:00)] was not greater "
            "than the threshold (50.0) (minimum 1 datapoint for ALARM -> OK transition).",
        ),
        (
            [1, 9, 1],
            {"DatapointsToAlarm": 3},
            "Threshold Crossed: 2 out of the last 3 datapoints "
            "[1.0 (23/11/26 08:59:00), 1.0 (23/11/26 08:57:00)] were not greater than the threshold "
            "(3.0) (minimum 1 datapoint for ALARM -> OK transition).",
        ),
        (
            [0],
            {"EvaluationPeriods": 1, "DatapointsToAlarm": None, "ComparisonOperator": "LessThanThreshold"},
            "Threshold Crossed: 1 datapoint [0.0 (23/11/26 08:59:00)] was less than the threshold (3.0).",
        ),
        (
            [],
            {"TreatMissingData": "breaching"},
            "Threshold Crossed: no datapoints were received for 3 periods and 3 missing datapoints were "
            "treated as [Breaching].",
        ),
        (
            [1, None, None],
            {"TreatMissingData": "notBreaching"},
            "Threshold Crossed: 1 datapoint was received for 3 periods and 2 missing datapoints were "
            "treated as [NonBreaching].",
        ),
        ([], {}, "Insufficient Data: 3 datapoints were unknown."),
    ],
)
def test_reasons(metrics: Metrics, values: list[float | None], changes: dict[str, Any], reason: str) -> None:
    metrics.put(*values)
    found = evaluated(metrics, **changes)
    assert found is not None
    assert found.reason == reason


def test_reason_data(metrics: Metrics) -> None:
    metrics.put(4, 5, 6)
    found = evaluated(metrics, NOW + 4.5)
    assert found is not None
    assert json.loads(found.reason_data) == {
        "version": "1.0",
        "queryDate": "2026-11-23T09:00:04.500+0000",
        "startDate": "2026-11-23T08:57:00.000+0000",
        "statistic": "Average",
        "period": 60,
        "recentDatapoints": [4.0, 5.0, 6.0],
        "threshold": 3.0,
        "evaluatedDatapoints": [
            {"timestamp": "2026-11-23T08:59:00.000+0000", "sampleCount": 1.0, "value": 6.0},
            {"timestamp": "2026-11-23T08:58:00.000+0000", "sampleCount": 1.0, "value": 5.0},
            {"timestamp": "2026-11-23T08:57:00.000+0000", "sampleCount": 1.0, "value": 4.0},
        ],
    }


@pytest.mark.parametrize(
    ("alarm", "words"),
    [
        ({**ALARM, "Period": 45}, "Period is 45"),
        ({**ALARM, "DatapointsToAlarm": 4}, "DatapointsToAlarm is 4"),
        ({**ALARM, "TreatMissingData": "bad"}, "TreatMissingData is 'bad'"),
        ({**ALARM, "Statistic": "tm90"}, "'tm90' is not emulated"),
        ({**ALARM, "ComparisonOperator": "GreaterThanUpperThreshold"}, "GreaterThanUpperThreshold"),
        ({**ALARM, "Threshold": None}, "Threshold is missing"),
        ({**ALARM, "Namespace": None}, "MetricName and Namespace"),
        (math("errors +"), "ends too early"),
        (math("errors", Metrics=[{"Id": "e1", "Expression": "1", "ReturnData": False}]), "ReturnData"),
        (math("errors", Metrics=[{"Id": "e1"}]), "either MetricStat or Expression"),
    ],
)
def test_an_alarm_that_cannot_be_evaluated_is_refused(alarm: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_alarm(alarm)
