"""Near real time and large peaks in the plan: figures, prices and words."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.edges import EDGES
from inference_blueprints.report.plan.sections.kafka import KAFKA
from inference_blueprints.report.plan.sections.streaming import STREAMING
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.performance import time_to_first_token_ms
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve

TEXT = (blueprints_directory() / "streaming-g6e.yaml").read_text(encoding="utf-8")


def summary_of(document: dict[str, Any]) -> PlanSummary:
    blueprint = parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint
    return summarise(blueprint, build_plan(blueprint))


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TEXT)
    return found


def table(summary: PlanSummary, title: str) -> str:
    [found] = [each for each in plan_tables(summary) if each.title == title]
    return "\n".join([*(" | ".join(row) for row in found.rows), *found.notes])


def test_the_job_is_sized_priced_and_explained(document: dict[str, Any]) -> None:
    summary = summary_of(document)
    [job] = summary[STREAMING]
    # Two KPUs with the one for management, and 50 GB of running storage.
    usd = catalog.service_prices().usd
    assert job.usd_per_day == pytest.approx(24 * 2 * usd("flink_kpu") + 50 * usd("flink_storage") * 24 / 730)
    text = table(summary, "Near real time")
    assert "calls in flight = 19.6/s x 0.6 s = 11.8" in text
    assert "of the whole job with a simulated endpoint" in text
    assert as_dict(summary)["streaming"][0]["keepsUp"] is True


def test_a_model_that_does_not_keep_up_is_named(document: dict[str, Any]) -> None:
    spec = document["spec"]
    spec["models"][0]["workload"] |= {"inputTokens": 600, "outputTokens": 200}
    spec["models"][0]["deployments"][0]["aggregated"]["replicas"] = 1
    text = table(summary_of(document), "Near real time")
    assert "It does not keep up" in text


def test_an_unknown_speed_has_its_true_reason(document: dict[str, Any]) -> None:
    """Red if the plan says that no latency profile covers a model whose profile ends below full load."""
    path = blueprints_directory() / "ads-reference.yaml"
    blueprint = parse_blueprint(path.read_text(encoding="utf-8"), str(path)).blueprint
    text = table(summarise(blueprint, build_plan(blueprint)), "Near real time")
    unknown = "Whether it keeps up at full load is unknown"
    assert f"{unknown}: the latency profile ends at fewer requests at once than a worker holds." in text
    document["spec"]["models"][0]["engine"] = {"sglang": {}}
    text = table(summary_of(document), "Near real time")
    assert f"{unknown}: no latency profile covers its requests." in text


def test_calls_that_take_longer_than_the_job_is_sized_for_are_named(document: dict[str, Any]) -> None:
    """A plan read the latency that the blueprint expects, beside a slower one of its own."""
    job = document["spec"]["streaming"][0]
    workload = document["spec"]["models"][0]["workload"]
    assert "latencyMillis" not in table(summary_of(document), "Near real time")
    workload["outputTokens"] = 40
    job["load"]["latencyMillis"] = 100
    summary = summary_of(document)
    [found] = summary[STREAMING]
    assert found.call_millis is not None
    assert found.max_in_flight / found.call_millis * 1000 == pytest.approx(found.most_calls_per_second)
    assert found.max_in_flight / found.call_millis * 1000 < found.calls_per_second
    # The first of 40 tokens comes with the time to the first token.
    blueprint = parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint
    [price], first = summary[TOKEN_PRICES], time_to_first_token_ms(resolve(blueprint, 0, 0))
    assert first is not None
    assert found.call_millis == pytest.approx(first + 39 * price.time_per_output_token_ms)
    assert "Raise latencyMillis" in table(summary, "Near real time")
    job["deadlineMillis"] = 1000
    assert "deadlineMillis is 1,000, which ends calls" in table(summary_of(document), "Near real time")


def test_the_cluster_is_priced_and_shares_are_shown(document: dict[str, Any]) -> None:
    summary = summary_of(document)
    kafka = summary[KAFKA]
    assert kafka is not None
    written_gb = kafka.ingress_mb_per_second * 86.4
    assert kafka.usd_per_day is not None
    usd, broker = catalog.service_prices().usd, catalog.broker_sizes()[kafka.instance_type or ""].usd_per_hour
    assert broker is not None
    assert kafka.usd_per_day == pytest.approx(
        3 * broker * 24
        + written_gb * usd("express_broker_data")
        + kafka.stored_gb * usd("express_broker_storage") * 24 / 730
    )
    parts = {item.name: item.usd_per_month for item in summary[PLATFORM_COST].items}
    assert parts["Kafka brokers"] == pytest.approx(kafka.usd_per_day * 730 / 24, abs=0.01)
    assert parts["streaming job shopper"] is not None


def test_an_unknown_price_is_shown_as_unknown(document: dict[str, Any]) -> None:
    document["spec"]["kafka"]["express"]["instanceType"] = "express.m7g.xlarge"
    summary = summary_of(document)
    kafka = summary[KAFKA]
    assert kafka is not None
    assert kafka.usd_per_day is None
    assert "unknown" in table(summary, "Kafka")
    assert "Kafka brokers" in summary[PLATFORM_COST].not_priced


def test_an_existing_cluster_costs_nothing_here(document: dict[str, Any]) -> None:
    document["spec"]["kafka"] = {
        "existing": {
            "clusterArn": "arn:aws:kafka:us-west-2:111122223333:cluster/shop/0a1b",
            "bootstrapServers": "b-1.example.com:9098",
            "securityGroupId": "sg-0a1b2c3d",
        }
    }
    document["spec"]["streaming"][0]["events"]["partitions"] = 12
    summary = summary_of(document)
    assert "existing cluster" in table(summary, "Kafka")
    assert "Kafka brokers" not in {item.name for item in summary[PLATFORM_COST].items}


def test_without_streaming_there_is_no_table(document: dict[str, Any]) -> None:
    for key in ("streaming", "kafka", "signalStore"):
        document["spec"].pop(key)
    summary = summary_of(document)
    assert summary[KAFKA] is None
    assert not {"Near real time", "Kafka", "Real time at a large peak"} & {
        each.title for each in plan_tables(summary)
    }


@pytest.fixture
def large(document: dict[str, Any]) -> dict[str, Any]:
    """A blueprint for 2,000 requests per second."""
    for key in ("streaming", "kafka", "signalStore"):
        document["spec"].pop(key)
    model = document["spec"]["models"][0]
    model["workload"] = {"inputTokens": 500, "outputTokens": 8, "peakRequestsPerSecond": 2000}
    model["objectives"] = {"timeToFirstTokenP90Ms": 200, "timePerOutputTokenP90Ms": 25}
    model["deployments"][0]["aggregated"]["replicas"] = 60
    document["spec"]["pools"][0]["nodes"]["max"] = 70
    return document


def test_a_large_peak_has_connections_units_and_traffic(large: dict[str, Any]) -> None:
    summary = summary_of(large)
    [edge] = summary[EDGES]
    # 200 ms for the first of 8 tokens, and 25 ms for each of 7 others.
    assert edge.connections == pytest.approx(2000 * 0.375)
    assert edge.bytes_per_request == 508 * 4 + 1500
    gb_per_hour = 2000 * edge.bytes_per_request * 3600 / 1e9
    assert edge.balancer_units == edge.byte_units == pytest.approx(gb_per_hour)
    both_directions = 2 * catalog.service_prices().usd("cross_zone_data")
    assert edge.cross_zone_gb_per_day == pytest.approx(gb_per_hour * 24 * 2 / 3)
    assert edge.cross_zone_usd_per_day == pytest.approx(edge.cross_zone_gb_per_day * both_directions)
    assert "it costs more than it saves" in table(summary, "Real time at a large peak")


def test_frontends_that_do_not_fit_are_named(large: dict[str, Any]) -> None:
    assert "Divide the traffic" not in table(summary_of(large), "Real time at a large peak")
    large["spec"]["models"][0]["frontend"] = {"replicas": 60, "cpu": 8, "memoryGib": 8}
    assert "Divide the traffic among 2 platforms" in table(summary_of(large), "Real time at a large peak")
