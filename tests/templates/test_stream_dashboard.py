"""The dashboard of streaming jobs shows metrics that the job registers, and those that AWS has of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, text
from tests.templates.test_streaming_stack import STACK, streaming
from tests.unit.job_sources import job_metrics

JOBS = ("shopper", "basket")
#: Metrics of applications: https://docs.aws.amazon.com/managed-flink/latest/java/metrics-dimensions.html
OF_FLINK = {"numRestarts", "numberOfFailedCheckpoints"}


@pytest.fixture(scope="module")
def body(synthesise: Synthesise) -> dict[str, Any]:
    templates: Templates = synthesise(streaming)
    found: dict[str, Any] = json.loads(
        text(templates.only("AWS::CloudWatch::Dashboard", STACK)["DashboardBody"])
    )
    return found


def graphs(body: dict[str, Any], job: str) -> dict[str, list[tuple[str, str, frozenset[tuple[str, str]]]]]:
    """Return the metrics of a job's graphs: namespace, name and dimensions, by title."""

    def metrics(widget: dict[str, Any]) -> Iterator[tuple[str, str, frozenset[tuple[str, str]]]]:
        for entry in widget["properties"]["metrics"]:
            words = [word for word in entry if isinstance(word, str)]
            if words:
                namespace, name, *rest = words
                yield namespace, name, frozenset(zip(rest[::2], rest[1::2], strict=True))

    return {
        widget["properties"]["title"].removeprefix(f"{job}: "): list(metrics(widget))
        for widget in body["widgets"]
        if widget["properties"].get("title", "").startswith(f"{job}: ")
    }


@pytest.mark.parametrize("job", JOBS)
def test_every_metric_is_of_this_job_and_exists(body: dict[str, Any], job: str) -> None:
    own = frozenset({("Application", f"try-{job}"), ("Service", "enrichment")})
    topic = {"shopper": "clicks", "basket": "carts"}[job]
    shown = [each for lines in graphs(body, job).values() for each in lines]
    for namespace, name, dimensions in shown:
        if namespace == "AWS/Kafka":
            assert name == "EstimatedMaxTimeLag"
            assert dimensions == {
                ("Cluster Name", "try-events"),
                ("Consumer Group", job),
                ("Topic", topic),
            }
        elif name in OF_FLINK:
            assert dimensions == {("Application", f"try-{job}")}
        else:
            assert (namespace, dimensions) == ("AWS/KinesisAnalytics", own)
            assert name in job_metrics()


@pytest.mark.parametrize("job", JOBS)
def test_an_operator_sees_what_a_job_does(body: dict[str, Any], job: str) -> None:
    shown = {name for lines in graphs(body, job).values() for _, name, _ in lines}
    assert shown >= {
        *("events", "EstimatedMaxTimeLag", "inFlight", "eventToSignalMillisP50", "eventToSignalMillisP99"),
        *("callMillisP99", "answered", "superseded", "deadLetters", "numRestarts", "sessionsOpen"),
    }


def test_counters_are_shown_as_growth(body: dict[str, Any]) -> None:
    expressions = [
        option["expression"]
        for widget in body["widgets"]
        for entry in widget["properties"].get("metrics", [])
        for option in entry
        if isinstance(option, dict) and "expression" in option
    ]
    assert len(expressions) == len(JOBS) * 6
    assert all(re.fullmatch(r"DIFF\(total_\w+\)", each) for each in expressions)


def test_the_alarms_of_all_jobs_are_above_the_graphs(body: dict[str, Any]) -> None:
    [first, *others] = body["widgets"]
    assert first["type"] == "alarm"
    assert len(first["properties"]["alarms"]) == 5 * len(JOBS)
    assert {each["type"] for each in others} == {"metric"}
