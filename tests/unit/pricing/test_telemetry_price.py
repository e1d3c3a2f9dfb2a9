"""Price of metrics, logs, traces, alarms, dashboards and the canary in a month."""

from __future__ import annotations

from typing import Any

import pytest

from inference_blueprints import catalog
from inference_blueprints.figures import CostItem, ProcessSummary
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.pricing.telemetry_price import MonitoringSize, serving_series, telemetry_items
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


def test_series_are_those_of_frontends_their_view_of_workers_and_workers() -> None:
    # 251 of a frontend and 5 for each of its workers; 243 of a worker: the counts of the recorded answers.
    series, unknown = serving_series(spec("observability: {}"), processes())
    assert series == 2 * (251 + 3 * 5) + 3 * 243
    assert unknown == ()


def test_an_engine_that_was_not_counted_is_named() -> None:
    series, unknown = serving_series(spec("observability: {}", "engine: {sglang: {}}"), processes())
    assert series == 2 * (251 + 3 * 5)
    assert unknown == ("qwen3-8b",)


def test_bytes_of_data_points_are_not_guessed() -> None:
    metrics = items(spec("observability: {}"))["metrics in CloudWatch"]
    assert metrics.usd_per_month is None
    # 56.8 million points of 100 bytes, 0.50 US dollars per GB.
    assert (
        "at 0.50 USD per GB: 2.84 USD for each 100 bytes of a point, whose size is not known"
        in metrics.assumption
    )
    assert "36 recorded series" in metrics.assumption
    # 2 * (251 + 3 * 5) + 3 * 243 series and the rules, once a minute.
    assert f"{(1261 + 36) * 43800 / 1e6:.0f} million data points" in metrics.assumption


@pytest.mark.parametrize(("ratio", "usd"), [("0.01", 0.26), ("1.0", 26.28)])
def test_traces_cost_at_most_the_peak_of_a_whole_month(ratio: str, usd: float) -> None:
    # 2 requests a second, 2,628,000 seconds, 5 millionths of a dollar.
    traces = items(spec(f"observability: {{traces: {{sampleRatio: {ratio}}}}}"))["traces"]
    assert traces.usd_per_month == usd
    assert traces.is_bound


def test_alarms_cost_a_standard_alarm_and_the_samples_that_they_scan() -> None:
    found = items(spec("observability: {}"))
    # 16 alarms at 0.10 US dollars; 200 samples in each of 43,800 minutes, a cent per million.
    assert found["PromQL alarms"].usd_per_month == pytest.approx(16 * 0.10 + 8.76 * 0.01, abs=0.005)
    assert "8.8 million samples" in found["PromQL alarms"].assumption


def test_dashboards_have_a_price() -> None:
    found = items(spec("observability: {}"))
    # 3 US dollars per dashboard.
    assert found["dashboards"].usd_per_month == 12.0
    assert "canary" not in found


@pytest.mark.parametrize(("every", "usd"), [(5, 0.88), (60, 0.07)])
def test_a_canary_costs_at_most_what_it_costs_if_no_model_answers(every: int, usd: float) -> None:
    found = items(spec(f"observability: {{canary: {{everyMinutes: {every}}}}}"))
    # 43,800 minutes / 5 calls of 60 s with 1/8 GB: 65,700 GB-s, and 8,760 requests.
    assert found["canary"].usd_per_month == usd
    assert found["canary"].is_bound
    # Two metrics and one alarm for the only model.
    assert found["metrics and alarms of the canary"].usd_per_month == pytest.approx(2 * 0.3 + 0.1)


def test_how_much_is_logged_is_not_guessed() -> None:
    logs = items(spec("observability: {}"))["logs of pods, nodes and control plane"]
    assert logs.usd_per_month is None
    assert "is not known" in logs.assumption
