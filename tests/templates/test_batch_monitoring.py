"""The dashboard and the alarms of batch are of metrics that its functions and workers really write."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import inference_catalog as catalog
from batch.completion import handlers
from batch.jobs.job_table import Job, JobError, RequestCounts
from batch.jobs.spending import Figures
from batch.scheduling.observation import Backlog, report
from batch.worker.metrics import Metrics
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.pricing.telemetry_price import (
    batch_alarms,
    batch_metrics_at_most,
    batch_signal_items,
)
from tests.templates.conftest import BASE, Synthesise
from tests.templates.support import Templates, text
from tests.templates.test_batch_stack import with_batch

PLATFORM, MODEL = "try", "qwen3-8b"
QUEUES = ("nightly", "urgent")
ENDS = ("completed", "failed", "expired", "cancelled")
#: A metric: its name, and its dimensions.
Written = tuple[str, frozenset[tuple[str, str]]]


@pytest.fixture(scope="module")
def batch(synthesise: Synthesise) -> Templates:
    return synthesise(with_batch)


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> set[Written]:
    """What the code writes of a platform with these queues, this model and this team."""
    monkeypatch.setattr(handlers, "tell", lambda *_: None)
    monkeypatch.setenv("BATCH_PLATFORM", PLATFORM)
    for state in ENDS:
        values: dict[str, Any] = dict.fromkeys(Job.__dataclass_fields__, "") | {"state": state, "errors": ()}
        values |= {"team": "ads", "model": MODEL, "queue": "nightly", "counts": RequestCounts()}
        handlers._tell(Job(**values), Figures())
    report({queue: Backlog() for queue in QUEUES}, PLATFORM)
    Metrics(PLATFORM, MODEL).write(in_flight=1, limit=2, held=3)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {each for line in lines for each in metrics_of(line)}


def metrics_of(line: dict[str, Any]) -> Iterator[Written]:
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "InferenceBlueprints/Batch"
    for dimensions in directive["Dimensions"]:
        for metric in directive["Metrics"]:
            assert metric["Name"] in line
            yield metric["Name"], frozenset((name, line[name]) for name in dimensions)


def dashboard(batch: Templates) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        text(batch.only("AWS::CloudWatch::Dashboard", "Batch")["DashboardBody"])
    )
    return found


def shown(body: dict[str, Any]) -> Iterator[tuple[str, Written]]:
    """Iterate over the metrics of graphs, with their namespaces; expressions have none."""
    for widget in body["widgets"]:
        for entry in widget["properties"].get("metrics", []):
            words = [word for word in entry if isinstance(word, str)]
            if words:
                namespace, name, *dimensions = words
                yield namespace, (name, frozenset(zip(dimensions[::2], dimensions[1::2], strict=True)))


def alarms(batch: Templates) -> list[dict[str, Any]]:
    return batch.properties("AWS::CloudWatch::Alarm", "Batch")


def test_every_metric_is_written_by_the_code(batch: Templates, written: set[Written]) -> None:
    own = {
        metric for namespace, metric in shown(dashboard(batch)) if namespace == "InferenceBlueprints/Batch"
    }
    own |= {
        (each["MetricName"], frozenset((entry["Name"], entry["Value"]) for entry in each["Dimensions"]))
        for each in alarms(batch)
        if each["Namespace"] == "InferenceBlueprints/Batch"
    }
    assert own - written == set()
    assert {name for name, _ in own} >= {
        *("JobsWaiting", "JobsRunning", "JobsEnding", "JobsEnded", "OldestWaitingSeconds", "WaitedPercent"),
        *("Requests", "Rows", "InFlight", "InFlightLimit", "Refused", "Unavailable", "Broken"),
        *("InputTokens", "OutputTokens", "CostUsd", "SchedulerRuns", "JobsBroken"),
    }


def test_what_is_written_of_ends_states_and_queues_is_all_shown(
    batch: Templates, written: set[Written]
) -> None:
    own = {metric for _, metric in shown(dashboard(batch))}
    expected = {each for each in written if each[0] in {"JobsEnded", "JobsWaiting", "WaitedPercent"}}
    assert expected <= own


def test_services_figures_are_of_the_resources_of_this_stack(batch: Templates) -> None:
    of_services = {
        (namespace, name)
        for namespace, (name, _) in shown(dashboard(batch))
        if namespace != "InferenceBlueprints/Batch"
    }
    assert of_services >= {
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
        ("AWS/SQS", "ApproximateAgeOfOldestMessage"),
        ("AWS/Lambda", "Errors"),
        ("AWS/States", "ExecutionsFailed"),
        ("AWS/ApiGateway", "5XXError"),
    }
    # Figures of an API have its name as their only dimension, so the name contains that of the platform.
    [name] = {
        value
        for namespace, (_, dimensions) in shown(dashboard(batch))
        if namespace == "AWS/ApiGateway"
        for _, value in dimensions
    }
    assert name == batch.only("AWS::ApiGateway::RestApi", "Batch")["Name"]
    assert name.endswith("-Batch")
    functions = batch.properties("AWS::Lambda::Function", "Batch")
    handlers_shown = [
        metric
        for namespace, metric in shown(dashboard(batch))
        if (namespace, metric[0]) == ("AWS/Lambda", "Errors")
    ]
    of_jobs = [each for each in functions if each["Handler"].startswith("batch.")]
    assert len(handlers_shown) == len(of_jobs)


def test_alarms_call_for_somebody_when_it_matters(batch: Templates) -> None:
    described = {tuple(each["AlarmDescription"].split(" Runbook: ")): each for each in alarms(batch)}
    assert {runbook for _, runbook in described} == {"docs/batch-runbook.md#dashboard-alarms-and-metrics"}
    found = {says: each for (says, _), each in described.items()}
    stopped = found["No jobs are started: the function `schedule` does not run, or fails."]
    assert (stopped["TreatMissingData"], stopped["Threshold"]) == ("breaching", 1)
    assert stopped["ComparisonOperator"] == "LessThanThreshold"
    others = [each for each in found.values() if each is not stopped]
    assert {each["TreatMissingData"] for each in others} == {"notBreaching"}
    assert {each["ComparisonOperator"] for each in others} == {"GreaterThanThreshold"}
    [age] = [each for each in others if each["MetricName"] == "ApproximateAgeOfOldestMessage"]
    assert age["Threshold"] == 3600, "the shorter of the two queues of the model"
    assert [each["MetricName"] for each in others].count("WaitedPercent") == len(QUEUES)
    assert [each.get("AlarmActions") for each in found.values()] == [None] * len(found)


def test_the_plan_prices_every_metric_alarm_and_dashboard(
    batch: Templates, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two teams have jobs in every queue, and jobs end in every state."""
    monkeypatch.setattr(handlers, "tell", lambda *_: None)
    monkeypatch.setenv("BATCH_PLATFORM", PLATFORM)
    for team, queue, state in product(("ads", "search"), QUEUES, ENDS):
        values: dict[str, Any] = dict.fromkeys(Job.__dataclass_fields__, "") | {"errors": ()}
        values |= {"team": team, "model": MODEL, "queue": queue, "state": state, "counts": RequestCounts()}
        handlers._tell(Job(**values), Figures())
    report({queue: Backlog() for queue in QUEUES}, PLATFORM)
    Metrics(PLATFORM, MODEL).write(in_flight=1, limit=2, held=3)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = {each for line in lines for each in metrics_of(line)}
    spec = parse_blueprint(json.dumps(with_teams("ads", "search")), "own.yaml").blueprint.spec
    assert batch_metrics_at_most(spec) == len(metrics)
    assert batch_alarms(spec) == len(alarms(batch))
    [item] = batch_signal_items(spec, catalog.service_prices())
    assert item.is_bound
    # US dollars per month: 0.30 for a metric, 0.10 for an alarm, 3 for a dashboard.
    assert item.usd_per_month == pytest.approx(0.3 * len(metrics) + 0.1 * len(alarms(batch)) + 3)


def test_without_batch_nothing_is_priced() -> None:
    spec = parse_blueprint(json.dumps(dict(BASE)), "own.yaml").blueprint.spec
    assert list(batch_signal_items(spec, catalog.service_prices())) == []


def with_teams(*names: str) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(dict(BASE))
    with_batch(document["spec"])
    [team] = document["spec"]["teams"]
    [principal] = team["principals"]
    document["spec"]["teams"] = [
        {**team, "name": name, "principals": [f"{principal}-{name}"], "dataPrefixes": prefixes}
        for name, prefixes in zip(names, [team["dataPrefixes"], *([[]] * len(names))], strict=False)
    ]
    return document


def test_a_job_that_broke_is_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "tell", lambda *_: None)
    monkeypatch.setenv("BATCH_PLATFORM", PLATFORM)
    for code in ("internal_error", "shards_failed"):
        values: dict[str, Any] = dict.fromkeys(Job.__dataclass_fields__, "")
        values |= {"state": "failed", "errors": (JobError(code, ""),), "counts": RequestCounts()}
        handlers._tell(Job(**values), Figures())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["JobsBroken"] for line in lines if "JobsBroken" in line] == [1, 0]
