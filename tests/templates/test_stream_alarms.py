"""Each alarm of a streaming job is raised by its fault, and silent without it, as CloudWatch evaluates it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from inference_constructs.streaming.stream_monitoring import StreamAlarms, StreamMetrics
from inference_contracts.streaming_job import DEAD_LETTERS_METRIC
from inference_local.emulator.alarms.alarm_definition import MetricStat, parse_alarm
from inference_local.emulator.alarms.metric_alarms import evaluate
from inference_local.emulator.alarms.period_statistics import MetricSample

# 2026-11-23 09:00:00 UTC
NOW = 1795424400.0
MINUTES = 40
FLINK = {"Application": "try-shopper"}
KAFKA = {"Cluster Name": "try-events", "Consumer Group": "shopper", "Topic": "clicks"}

Values = dict[str, list[float | None]]


@pytest.fixture(scope="module")
def alarms() -> dict[str, dict[str, Any]]:
    """The alarms' properties by the last word of their names in the tree."""
    stack = cdk.Stack(cdk.App(), "Alarms")
    people = sns.Topic(stack, "People")
    StreamAlarms(
        stack,
        "Job",
        metrics=StreamMetrics("try-shopper", "shopper", "try-events", "clicks"),
        people=people,
    )
    found = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm")
    names = ("behind", "restarting", "stopped", "checkpointsfailing", "deadletters")
    return {
        name: {**resource["Properties"], "AlarmName": name}
        for name in names
        for logical_id, resource in found.items()
        if logical_id.startswith(f"Job{name}")
    }


def healthy() -> Values:
    """A job that runs and answers. It commits its position each minute, so it is a minute behind."""
    steady = list[float | None]
    return {
        "numRestarts": steady([2.0] * MINUTES),
        "numberOfFailedCheckpoints": steady([1.0] * MINUTES),
        DEAD_LETTERS_METRIC: steady([7.0] * MINUTES),
        "EstimatedMaxTimeLag": steady([61.0] * MINUTES),
    }


def growing(*minutes: int) -> list[float | None]:
    """A counter that grows by one in these minutes before now."""
    steps = [1.0 if MINUTES - at in minutes else 0.0 for at in range(MINUTES)]
    return list(accumulate(steps))


def state(alarm: dict[str, Any], values: Values) -> str:
    """Evaluate an alarm on one value per minute."""

    def source(metric: MetricStat, start: float, end: float) -> Sequence[MetricSample]:
        wanted = KAFKA if metric.name == "EstimatedMaxTimeLag" else FLINK
        if metric.name == DEAD_LETTERS_METRIC:
            wanted = {**wanted, "Service": "enrichment"}
        assert dict(metric.dimensions) == wanted
        assert metric.namespace == ("AWS/Kafka" if wanted is KAFKA else "AWS/KinesisAnalytics")
        at = [NOW - 60 * (MINUTES - place) + 1 for place in range(MINUTES)]
        return [
            MetricSample(time, 1, value, value, value)
            for time, value in zip(at, values[metric.name], strict=True)
            if value is not None and start <= time < end
        ]

    found = evaluate(parse_alarm(alarm), source, NOW)
    assert found is not None
    return found.state


def test_a_healthy_job_raises_none(alarms: dict[str, dict[str, Any]]) -> None:
    assert {name: state(alarm, healthy()) for name, alarm in alarms.items()} == dict.fromkeys(
        ("behind", "restarting", "stopped", "checkpointsfailing", "deadletters"), "OK"
    )


@pytest.mark.parametrize(
    ("alarm", "metric", "values"),
    [
        ("behind", "EstimatedMaxTimeLag", [200.0] * MINUTES),
        ("restarting", "numRestarts", growing(12, 7, 2)),
        # CloudWatch looks back further than five minutes before it counts missing values.
        ("stopped", "numRestarts", [0.0] * (MINUTES - 10) + [None] * 10),
        ("checkpointsfailing", "numberOfFailedCheckpoints", growing(6, 4, 1)),
        ("deadletters", DEAD_LETTERS_METRIC, growing(1)),
    ],
)
def test_a_fault_raises_its_alarm_and_no_other(
    alarms: dict[str, dict[str, Any]], alarm: str, metric: str, values: list[float | None]
) -> None:
    faulty = {**healthy(), metric: values}
    raised = [name for name, each in alarms.items() if state(each, faulty) == "ALARM"]
    assert raised == [alarm]


@pytest.mark.parametrize(
    ("alarm", "metric", "values"),
    [
        ("behind", "EstimatedMaxTimeLag", [200.0] * (MINUTES - 2) + [61.0] * 2),
        ("restarting", "numRestarts", growing(3)),
        ("stopped", "numRestarts", [0.0] * (MINUTES - 5) + [None] * 4 + [0.0]),
        ("checkpointsfailing", "numberOfFailedCheckpoints", growing(4, 2)),
        ("deadletters", DEAD_LETTERS_METRIC, growing(20, 19, 18)),
        # A restart sets counters back to zero.
        ("deadletters", DEAD_LETTERS_METRIC, [9.0] * (MINUTES - 1) + [0.0]),
    ],
)
def test_what_passes_by_itself_does_not(
    alarms: dict[str, dict[str, Any]], alarm: str, metric: str, values: list[float | None]
) -> None:
    assert state(alarms[alarm], {**healthy(), metric: values}) == "OK"


def test_people_are_told_of_the_beginning_and_the_end(alarms: dict[str, dict[str, Any]]) -> None:
    assert len(alarms) == 5
    for each in alarms.values():
        assert each["AlarmActions"] == each["OKActions"]
