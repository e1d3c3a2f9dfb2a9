"""The canary's alarm follows its reports, as CloudWatch evaluates it: failures, answers, no report.

The reports are those that the function prints. The alarm is that of the template.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from canary import model_questions

from inference_constructs.observability.model_canary import CanaryAlarms
from inference_local.emulator.alarms.alarm_definition import (
    AlarmDefinition,
    MetricStat,
    parse_alarm,
)
from inference_local.emulator.alarms.log_metrics import embedded_metrics
from inference_local.emulator.alarms.metric_alarms import evaluate
from inference_local.emulator.alarms.period_statistics import MetricSample

# 2026-11-23 09:00:00 UTC
NOW = 1795424400.0
EVERY_MINUTES = 5
PLATFORM, MODEL = "try", "qwen3-8b"
GOOD, BAD, SILENT = "", "status 503", None


@pytest.fixture(scope="module")
def alarm() -> AlarmDefinition:
    stack = cdk.Stack(cdk.App(), "Alarms")
    CanaryAlarms(
        stack,
        "Canary",
        platform=PLATFORM,
        models=[MODEL],
        every_minutes=EVERY_MINUTES,
        runbook="docs/runbooks/canary-failing.md",
        alarm_topic=None,
    )
    (found,) = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    return parse_alarm({**found["Properties"], "AlarmName": MODEL})


def _lines(rounds: Sequence[str | None], model: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that the function prints in rounds that end now. None is a round that did not run."""
    lines = []
    for back, error in zip(range(len(rounds), 0, -1), rounds, strict=True):
        if error is not None:
            at = NOW - 60 * EVERY_MINUTES * back + 30
            monkeypatch.setattr(time, "time", lambda at=at: at)
            report = model_questions.report(PLATFORM, model, 800.0, error)
            lines.append(json.dumps(report))
    return lines


def _state(alarm: AlarmDefinition, lines: Sequence[str]) -> str | None:
    """Return the state of the alarm after these lines; None if it keeps its state."""
    metrics = [metric for line in lines for metric in embedded_metrics(line)]

    def source(metric: MetricStat, start: float, end: float) -> list[MetricSample]:
        return [
            MetricSample(each.at_seconds, 1, each.values[0], each.values[0], each.values[0], each.unit)
            for each in metrics
            if (each.namespace, each.name) == (metric.namespace, metric.name)
            and each.dimensions == dict(metric.dimensions)
            and start <= each.at_seconds < end
        ]

    found = evaluate(alarm, source, NOW)
    return found.state if found else None


@pytest.mark.parametrize(
    ("rounds", "state"),
    [
        ([GOOD] * 6, "OK"),
        ([GOOD, GOOD, GOOD, GOOD, BAD, BAD], "ALARM"),
        ([BAD, BAD, BAD, BAD, BAD, GOOD], "OK"),
        ([GOOD, GOOD, GOOD, GOOD, GOOD, BAD], "OK"),
        ([SILENT] * 6, "ALARM"),
        # CloudWatch looks at three rounds more than the alarm's two before it counts missing ones:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
        ([GOOD, SILENT, SILENT, SILENT, SILENT, SILENT], "ALARM"),
        ([GOOD, GOOD, GOOD, GOOD, SILENT, SILENT], "OK"),
        ([GOOD, GOOD, GOOD, BAD, BAD, SILENT], "ALARM"),
        ([SILENT, SILENT, SILENT, SILENT, GOOD, GOOD], "OK"),
    ],
    ids=[
        "all answered",
        "two lost answers",
        "an answer again",
        "one lost answer",
        "the canary never ran",
        "the canary stopped",
        "two reports are missing",
        "two lost answers, then no report",
        "the canary runs again",
    ],
)
def test_the_alarm_follows_the_reports(
    rounds: Sequence[str | None], state: str, alarm: AlarmDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _state(alarm, _lines(rounds, MODEL, monkeypatch)) == state


def test_answers_of_another_model_do_not_keep_it_silent(
    alarm: AlarmDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        *_lines([BAD] * 6, MODEL, monkeypatch),
        *_lines([GOOD] * 6, "another", monkeypatch),
    ]
    assert _state(alarm, lines) == "ALARM"
