"""What alarms and dashboards ask for is recorded by Prometheus, and sent to CloudWatch once."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from inference_blueprints.render.monitoring.recordings import recordings
from inference_contracts.metric_labels import PROMETHEUS_ADDRESS
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates
from tests.templates.test_observability_stack import configuration, prometheus

_NAMES = re.compile(r"\b(?:serving|pool|model|platform)_\w+")


@pytest.fixture(scope="module")
def observed(synthesise: Synthesise) -> Templates:
    def change(spec: dict[str, Any]) -> None:
        spec["observability"] = {}
        spec["models"][0]["objectives"] = {
            "timeToFirstTokenP90Ms": 900,
            "timePerOutputTokenP90Ms": 40,
            "timeToFirstTokenMs": {"p50": 500, "p95": 1200},
            "requestMs": {"p90": 8000, "p99": 9000},
        }

    return synthesise(change)


def rules(templates: Templates) -> list[dict[str, Any]]:
    """Return the recording rules in the values of Prometheus."""
    (group,) = prometheus(templates)["serverFiles"]["recording_rules.yml"]["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def recorded_jobs(templates: Templates) -> list[tuple[str, dict[str, Any]]]:
    """Return each job that asks Prometheus for series, with the name of its agent."""
    return [
        (agent["name"], job)
        for agent in configuration(templates)["agents"]
        if "otelConfig" in agent
        for job in agent["otelConfig"]["receivers"]["prometheus/platform"]["config"]["scrape_configs"]
        if job.get("metrics_path") == "/federate"
    ]


def test_every_series_of_an_alarm_or_a_dashboard_is_recorded(observed: Templates) -> None:
    recorded = {rule["record"] for rule in rules(observed)}
    queries = [
        alarm["EvaluationCriteria"]["PromQLCriteria"]["Query"]
        for alarm in observed.properties("AWS::CloudWatch::Alarm", "Monitoring")
    ]
    bodies = [
        json.dumps(each["DashboardBody"])
        for each in observed.properties("AWS::CloudWatch::Dashboard", "Monitoring")
    ]
    for text in (*queries, *bodies):
        asked = set(_NAMES.findall(text))
        assert asked - recorded == set()
        # Container Insights sends its own series, whose labels of the resource have this prefix.
        assert asked or '"@resource.' in text
    assert len([query for query in queries if '"@resource.' in query]) == 1


def test_rules_select_series_of_this_platform(observed: Templates) -> None:
    for rule in rules(observed):
        if rule["expr"].startswith("vector("):
            assert rule["labels"]["platform"] == "try"
        else:
            assert 'platform="try"' in rule["expr"], rule["record"]


def test_objectives_of_the_blueprint_are_in_the_rules(observed: Templates) -> None:
    late = {rule["record"] for rule in rules(observed) if "late_ratio" in rule["record"]}
    # Four windows of each of six objectives.
    assert len(late) == 24


def test_one_agent_sends_each_recorded_series_and_nothing_else(observed: Templates) -> None:
    ((agent, job),) = recorded_jobs(observed)
    (cluster_agent,) = [each for each in configuration(observed)["agents"] if each["name"] == agent]
    assert cluster_agent["mode"] == "deployment"
    assert "replicas" not in cluster_agent  # the chart's default is one
    ((target,),) = [each["targets"] for each in job["static_configs"]]
    assert f"http://{target}" == PROMETHEUS_ADDRESS
    assert job["honor_labels"]
    (match,) = job["params"]["match[]"]
    pattern = re.fullmatch(r'\{__name__=~"(.+)"\}', match)
    assert pattern is not None
    names = {rule["record"] for rule in rules(observed)}
    assert {name for name in names if not re.fullmatch(pattern[1], name)} == set()
    reported = ("vllm:num_requests_waiting", "dynamo_frontend_requests_total", "up", "DCGM_FI_DEV_GPU_UTIL")
    assert not any(re.fullmatch(pattern[1], name) for name in reported)


def test_an_agent_sends_what_it_reads(observed: Templates) -> None:
    for agent in configuration(observed)["agents"]:
        (pipeline,) = agent["otelConfig"]["service"]["pipelines"].values()
        assert pipeline["receivers"] == list(agent["otelConfig"]["receivers"])
        assert pipeline["exporters"] == list(agent["otelConfig"]["exporters"])


def test_prometheus_keeps_the_longest_window(observed: Templates) -> None:
    hours = [int(window[:-1]) for each in recordings() for window in each.windows if window.endswith("h")]
    assert int(prometheus(observed)["server"]["retention"].removesuffix("h")) > max(hours)


def test_only_known_prices_are_in_the_rules(synthesise: Synthesise) -> None:
    def priced(templates: Templates) -> dict[tuple[str, str], str]:
        return {
            (rule["labels"]["instance_type"], rule["labels"]["purchase"]): rule["expr"]
            for rule in rules(templates)
            if rule["record"] == "pool_node_usd_per_hour"
        }

    def spot(spec: dict[str, Any]) -> None:
        spec["observability"] = {}
        spec["pools"][0]["purchase"] = {"spot": {}}

    on_demand = priced(synthesise(lambda spec: spec.update(observability={})))
    assert {purchase for _, purchase in on_demand} == {"on-demand"}
    assert all(float(expression[len("vector(") : -1]) > 0 for expression in on_demand.values())
    assert priced(synthesise(spot)) == {}
