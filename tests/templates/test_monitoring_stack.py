"""The alarms and dashboards of a platform with observability."""

from __future__ import annotations

import json
from typing import Any

import pytest
from canary import model_questions

from inference_blueprints.render.monitoring.alarm_table import alarm_rows
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, text

_STACK = "Monitoring"


@pytest.fixture(scope="module")
def told(synthesise: Synthesise) -> Templates:
    def change(document: dict[str, Any]) -> None:
        document["observability"] = {"alarms": {"emails": ["people@example.com"]}}

    return synthesise(change)


@pytest.fixture(scope="module")
def untold(synthesise: Synthesise) -> Templates:
    def change(document: dict[str, Any]) -> None:
        document["observability"] = {}

    return synthesise(change)


def test_every_row_is_a_promql_alarm_with_its_runbook_and_its_people(told: Templates) -> None:
    alarms = told.properties("AWS::CloudWatch::Alarm", _STACK)
    assert len(alarms) == sum(not row.elastic and not row.door for row in alarm_rows())
    for alarm in alarms:
        criteria = alarm["EvaluationCriteria"]["PromQLCriteria"]
        assert '="try"' in criteria["Query"]
        assert "$" not in criteria["Query"]
        assert " Runbook: docs/runbooks/" in alarm["AlarmDescription"]
        assert alarm["AlarmActions"] == alarm["OKActions"] != []
        assert 10 <= alarm["EvaluationInterval"] <= 3600
    assert told.only("AWS::SNS::Subscription", _STACK)["Endpoint"] == "people@example.com"


def test_cloudwatch_may_publish_to_the_encrypted_topic(told: Templates) -> None:
    assert told.only("AWS::SNS::Topic", _STACK)["KmsMasterKeyId"]
    document = told.only("AWS::SNS::TopicPolicy", _STACK)["PolicyDocument"]
    (publishes,) = (each for each in document["Statement"] if each["Effect"] == "Allow")
    readers = json.dumps(told.only("AWS::KMS::Key", _STACK)["KeyPolicy"])
    assert publishes["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert publishes["Action"] == "sns:Publish"
    # Alarms of other accounts cannot reach people here.
    assert text(publishes["Condition"]["StringEquals"]["aws:SourceAccount"]) == "${AWS::AccountId}"
    source = text(publishes["Condition"]["ArnLike"]["aws:SourceArn"])
    assert source == "arn:aws:cloudwatch:us-west-2:${AWS::AccountId}:alarm:*"
    assert "cloudwatch.amazonaws.com" in readers


def test_every_row_is_a_dashboard_with_a_graph_of_each_panel(untold: Templates) -> None:
    found = {}
    for each in untold.properties("AWS::CloudWatch::Dashboard", _STACK):
        widgets = json.loads(text(each["DashboardBody"]))["widgets"]
        (title,) = [widget["properties"]["markdown"] for widget in widgets if widget["type"] == "text"]
        found[title.splitlines()[0]] = widgets
    assert len(found) == len(dashboard_rows())
    for row in dashboard_rows():
        widgets = found[f"# {row.name}"]
        graphs = {each["properties"]["title"]: each for each in widgets if each["type"] == "chart"}
        assert set(graphs) == {panel.title for panel in (*row.panels, *row.insights)}
        for panel in row.panels:
            queries = [each["query"] for each in graphs[panel.title]["properties"]["data"]["queries"]]
            assert queries == [f'{name}{{platform="try"}}' for name in panel.series]
        places = [(each["x"], each["y"]) for each in widgets]
        assert len(places) == len(set(places))


def test_without_people_nobody_is_told(untold: Templates) -> None:
    assert untold.properties("AWS::SNS::Topic", _STACK) == []
    assert all("AlarmActions" not in each for each in untold.properties("AWS::CloudWatch::Alarm", _STACK))


def test_a_model_that_does_not_answer_the_canary_raises_an_alarm(
    synthesise: Synthesise, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_PLATFORM", "try")
    monkeypatch.setenv("CANARY_MODELS", json.dumps([{"name": "qwen3-8b", "url": "-", "task": "generate"}]))
    monkeypatch.setattr(model_questions, "ask", lambda *_: "status 503")
    model_questions.handle(None, None)
    monkeypatch.setattr(model_questions, "ask", lambda *_: "")
    model_questions.handle(None, None)
    broken, well = (json.loads(line) for line in capsys.readouterr().out.splitlines())

    templates = synthesise(lambda spec: spec.update(observability={"canary": {"everyMinutes": 10}}))
    (alarm,) = [
        each for each in templates.properties("AWS::CloudWatch::Alarm", _STACK) if "MetricName" in each
    ]
    (written,) = broken["_aws"]["CloudWatchMetrics"]
    assert alarm["Namespace"] == written["Namespace"]
    dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
    assert [list(dimensions)] == [sorted(names) for names in written["Dimensions"]]
    assert all(broken[name] == value for name, value in dimensions.items())
    assert alarm["ComparisonOperator"] == "LessThanThreshold"
    assert broken[alarm["MetricName"]] < alarm["Threshold"] <= well[alarm["MetricName"]]
    assert alarm["Period"] == 600
    assert alarm["TreatMissingData"] == "breaching"
    assert alarm["AlarmDescription"].endswith(" Runbook: docs/runbooks/canary-failing.md")


def test_without_a_canary_nothing_waits_for_its_answers(untold: Templates) -> None:
    alarms = untold.properties("AWS::CloudWatch::Alarm", _STACK)
    assert not [each for each in alarms if "MetricName" in each]
