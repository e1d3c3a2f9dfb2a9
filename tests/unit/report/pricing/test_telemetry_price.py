"""Price of metrics, logs, traces, alarms, dashboards and the canary in a month."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.figures import CostItem, ProcessSummary
from inference_blueprints.report.pricing.telemetry_price import (
    MonitoringSize,
    process_series,
    telemetry_items,
)
from inference_blueprints.spec.types import Spec

TEXT = """
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: try}
spec:
  environment: {region: us-east-1}
  cluster: {eks: {version: "1.35"}}
  %s
  pools: [{name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 4}}]
  models:
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B, revision: main}
    workload: {inputTokens: 3000, outputTokens: 200, peakRequestsPerSecond: 2}
    %s
    deployments:
    - {name: main, aggregated: {pool: l40s, replicas: 2, tensorParallelSize: 1}}
"""


def usd(service: str) -> float:
    """Return the price of a service, in its unit."""
    return catalog.service_prices().usd(service)


def spec(observability: str = "", engine: str = "") -> Spec:
    return parse_blueprint(TEXT % (observability, engine), "own.yaml").blueprint.spec


def processes(*, frontends: int = 2, workers: int = 3) -> list[ProcessSummary]:
    shared: dict[str, Any] = {"model": "qwen3-8b", "deployment": "main", "image": "image", "nodes": 1}
    return [
        ProcessSummary(
            name="frontend",
            replicas=frontends,
            replicas_least=frontends,
            accelerators=0,
            pool=None,
            **shared,
        ),
        ProcessSummary(
            name="worker", replicas=workers, replicas_least=workers, accelerators=1, pool="l40s", **shared
        ),
    ]


def items(of: Spec) -> dict[str, CostItem]:
    size = MonitoringSize(recorded_series=36, promql_alarms=16, samples_per_minute=200, dashboards=4)
    return {each.name: each for each in telemetry_items(of, processes(), size, catalog.service_prices())}


def test_without_the_section_nothing_is_priced() -> None:
    assert items(spec()) == {}


def test_series_are_those_of_frontends_their_view_of_workers_workers_and_gpus() -> None:
    # 251 of a frontend and 2 for each of its workers; 243 of a worker, 23 of its GPU: recorded answers.
    assert process_series(processes()) == 2 * (251 + 3 * 2) + 3 * (243 + 23)


def test_metrics_cost_the_series_that_agents_send() -> None:
    """Red if series of engines, which stay in Prometheus, are priced, or if the sum is not known."""
    found = items(spec("observability: {}"))
    points, per_gb = (36 + 3 * 6) * 43800, usd("otel_metrics")
    metrics = found["metrics in CloudWatch"]
    assert metrics.usd_per_month == pytest.approx(points * 480 / 1e9 * per_gb, abs=0.005)
    assert "36 recorded series, and 6 of each of 3 GPUs" in metrics.assumption
    # Nobody counted what Container Insights sends of a node or a pod.
    assert found["Container Insights"].usd_per_month is None


def test_prometheus_that_needs_more_than_a_system_node_has_is_not_free() -> None:
    services, size = (
        catalog.service_prices(),
        MonitoringSize(recorded_series=36, promql_alarms=16, samples_per_minute=200, dashboards=4),
    )
    many = processes(frontends=16, workers=8000)
    found = {each.name: each for each in telemetry_items(spec("observability: {}"), many, size, services)}
    assert found["Prometheus"].usd_per_month is None
    assert "2 pods of 9.5 GiB for up to 2,388,016 series" in found["Prometheus"].assumption
    assert items(spec("observability: {}"))["Prometheus"].usd_per_month == 0


@pytest.mark.parametrize("ratio", [0.01, 1.0])
def test_traces_cost_at_most_the_peak_of_a_whole_month(ratio: float) -> None:
    # 2 requests a second, 2,628,000 seconds.
    traces = items(spec(f"observability: {{traces: {{sampleRatio: {ratio}}}}}"))["traces"]
    assert traces.usd_per_month == pytest.approx(ratio * 2 * 2_628_000 * usd("trace"), abs=0.005)
    assert traces.is_bound


def test_alarms_cost_a_standard_alarm_and_the_samples_that_they_scan() -> None:
    found = items(spec("observability: {}"))
    # 200 samples in each of 43,800 minutes.
    expected = 16 * usd("metric_alarm") + 8.76e6 * usd("promql_sample")
    assert found["PromQL alarms"].usd_per_month == pytest.approx(expected, abs=0.005)
    assert "8.8 million samples" in found["PromQL alarms"].assumption


def test_dashboards_have_a_price() -> None:
    found = items(spec("observability: {}"))
    assert found["dashboards"].usd_per_month == pytest.approx(4 * usd("dashboard"))
    assert "canary" not in found


@pytest.mark.parametrize("every", [5, 60])
def test_a_canary_costs_at_most_what_it_costs_if_no_model_answers(every: int) -> None:
    found = items(spec(f"observability: {{canary: {{everyMinutes: {every}}}}}"))
    # One call in so many of 43,800 minutes, each of 60 s with 1/8 GB.
    per_call = 60 / 8 * usd("function_arm_duration") + usd("function_arm_request")
    assert found["canary"].usd_per_month == pytest.approx(43_800 / every * per_call, abs=0.005)
    assert found["canary"].is_bound
    # Two metrics and one alarm for the only model.
    of_model = 2 * usd("custom_metric") + usd("metric_alarm")
    assert found["metrics and alarms of the canary"].usd_per_month == pytest.approx(of_model, abs=0.005)


def test_how_much_is_logged_is_not_guessed() -> None:
    logs = items(spec("observability: {}"))["logs of pods, nodes and control plane"]
    assert logs.usd_per_month is None
    assert "is not known" in logs.assumption


def test_on_ecs_tasks_are_counted_and_prometheus_is_a_task() -> None:
    """Frontends that count as workers, and words of Kubernetes, turn this red."""
    text = TEXT % ("observability: {}", "")
    on_ecs = parse_blueprint(text.replace('eks: {version: "1.35"}', "ecs: {}"), "own.yaml").blueprint.spec
    assert on_ecs.cluster.ecs is not None
    frontend, worker = processes()
    tasks = [replace(frontend, pool="Fargate"), worker]
    assert process_series(tasks) == process_series(processes())
    found = items(on_ecs)
    # 1 vCPU and 4 GiB for 730 hours at Fargate's prices.
    assert found["Prometheus on Fargate"].usd_per_month == round((0.04048 + 4 * 0.004445) * 730, 2)
    said = " ".join(f"{each.name} {each.assumption}" for each in found.values())
    assert not re.search(r"\bpods?\b|control plane|system node", said)
