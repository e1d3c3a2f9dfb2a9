"""Price of metrics, logs and traces in a month."""

from __future__ import annotations

from typing import Any

import pytest

from inference_blueprints import catalog
from inference_blueprints.figures import CostItem, ProcessSummary
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.pricing.telemetry_price import serving_series, telemetry_items
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
    return {each.name: each for each in telemetry_items(of, processes(), 36, catalog.service_prices())}


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


def test_a_price_that_is_not_known_is_not_guessed() -> None:
    metrics = items(spec("observability: {}"))["metrics in CloudWatch"]
    assert metrics.usd_per_month is None
    assert "at a price that is not known" in metrics.assumption
    assert "36 recorded series" in metrics.assumption
    # 2 * (251 + 3 * 5) + 3 * 243 series and the rules, once a minute.
    assert f"{(1261 + 36) * 43800 / 1e6:.0f} million data points" in metrics.assumption


@pytest.mark.parametrize(("ratio", "usd"), [("0.01", 0.26), ("1.0", 26.28)])
def test_traces_cost_at_most_the_peak_of_a_whole_month(ratio: str, usd: float) -> None:
    # 2 requests a second, 2,628,000 seconds, 5 millionths of a dollar.
    traces = items(spec(f"observability: {{traces: {{sampleRatio: {ratio}}}}}"))["traces"]
    assert traces.usd_per_month == usd
    assert traces.is_bound
