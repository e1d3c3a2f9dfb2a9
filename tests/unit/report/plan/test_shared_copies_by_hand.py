"""A node that shares a copy fetches it once: the cold start and the traffic of `plan`, redone by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cold_starts import COLD_STARTS
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan

COMMIT = "39eb2b067ea6b8e3e1dd97d3cd0c7ffeaf3e1a35"
REPOSITORY = {"huggingFace": "Qwen/Qwen3-235B-A22B-FP8", "revision": COMMIT}


def _plan(document: dict[str, Any], weights: dict[str, Any], **disk: int) -> PlanSummary:
    document = copy.deepcopy(document)
    document["spec"]["pools"] = [
        {"name": "h200", "instanceTypes": ["p5en.48xlarge"], "nodes": {"max": 3}, "disk": disk}
    ]
    [model] = document["spec"]["models"]
    model["weights"] = weights
    model["engine"] = {"sglang": {}}
    model["workload"] = {"inputTokens": 4000, "outputTokens": 1000, "peakRequestsPerSecond": 8}
    model["deployments"] = [
        {"name": "main", "aggregated": {"pool": "h200", "replicas": 4, "tensorParallelSize": 4}}
    ]
    blueprint = parse_blueprint(yaml.safe_dump(document), "by-hand.yaml").blueprint
    return summarise(blueprint, build_plan(blueprint), None)


# One of 16 cards of 3,200 Gbit/s has 25 GB/s, and one NAT gateway 100 Gbit/s = 12.5 GB/s. The gateway
# endpoint of S3 bypasses the NAT gateway.
@pytest.mark.parametrize(
    ("weights", "disk", "expected"),
    [
        # One copy of 236.445407232 GB; two without a shared one.
        (REPOSITORY, {}, (236_445_407_232, 18.9156, "from the Hub by NAT gateway")),
        (REPOSITORY, {"nodeCacheGib": 0}, (472_890_814_464, 37.8313, "from the Hub by NAT gateway")),
        ({**REPOSITORY, "mirror": {}}, {}, (236_445_407_232, 9.4578, "from S3 by network")),
    ],
)
def test_the_cold_start_counts_what_a_node_fetches(
    quickstart_document: dict[str, Any],
    weights: dict[str, Any],
    disk: dict[str, int],
    expected: tuple[int, float, str],
) -> None:
    weights_bytes, seconds, source = expected
    (start,) = _plan(quickstart_document, weights, **disk)[COLD_STARTS]
    assert (start.workers_on_the_node, start.weights_bytes) == (2, weights_bytes)
    assert start.weights_seconds == pytest.approx(seconds, abs=1e-4)
    assert start.weights_from == source


# 4 workers on 2 nodes.
@pytest.mark.parametrize(("disk", "gigabytes"), [({}, "473 GB"), ({"nodeCacheGib": 0}, "946 GB")])
def test_the_price_of_traffic_counts_a_copy_per_node(
    quickstart_document: dict[str, Any], disk: dict[str, int], gigabytes: str
) -> None:
    cost = _plan(quickstart_document, REPOSITORY, **disk)[PLATFORM_COST]
    assert cost is not None
    [downloads] = [each for each in cost.items if each.name == "NAT gateway data"]
    assert gigabytes in downloads.assumption


# A draft has 1.900052480 GB, and each of the 2 workers of a node fetches it, beside one copy of the model of
# 16.060522496 GB: 19.86 GB.
def test_each_worker_fetches_its_draft(quickstart_document: dict[str, Any]) -> None:
    document = copy.deepcopy(quickstart_document)
    document["spec"]["pools"] = [{"name": "h200", "instanceTypes": ["p5en.48xlarge"], "nodes": {"max": 1}}]
    [model] = document["spec"]["models"]
    region = document["spec"]["environment"]["region"]
    model["weights"] = {
        "huggingFace": "meta-llama/Llama-3.1-8B-Instruct",
        "revision": COMMIT,
        "tokenSecretArn": f"arn:aws:secretsmanager:{region}:111122223333:secret:hub-AbCdEf",
    }
    draft = {"huggingFace": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "revision": COMMIT}
    model["speculation"] = {"eagle": draft}
    model["deployments"] = [
        {"name": "main", "aggregated": {"pool": "h200", "replicas": 2, "tensorParallelSize": 1}}
    ]
    blueprint = parse_blueprint(yaml.safe_dump(document), "by-hand.yaml").blueprint
    summary = summarise(blueprint, build_plan(blueprint), None)
    [start] = summary[COLD_STARTS]
    assert start.weights_bytes == 16_060_522_496 + 2 * 1_900_052_480
    assert summary[PLATFORM_COST] is not None
    [downloads] = [each for each in summary[PLATFORM_COST].items if each.name == "NAT gateway data"]
    assert "20 GB" in downloads.assumption
