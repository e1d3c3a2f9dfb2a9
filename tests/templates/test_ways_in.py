"""Queues and streaming jobs with deployments of their own: their addresses, on EKS and on ECS."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from inference_contracts.streaming_job import StreamingJobConfiguration
from tests.templates.conftest import Synthesise, SynthesiseShipped
from tests.templates.support import Templates
from tests.templates.test_streaming_stack import documents, streaming

# Two whole platforms: more processor time than the first tier has for one subject.
pytestmark = pytest.mark.thorough

STACK = "Model-qwen3-8b"


def apart(spec: dict[str, Any]) -> None:
    """Serve the jobs of a queue with a deployment of their own, and a streaming job with another."""
    streaming(spec)
    spec["streaming"][0] |= {"deployments": ["clicks"], "workload": {"inputTokens": 600, "outputTokens": 20}}
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
    spec["models"][0] |= {
        "workload": {
            "inputTokens": {"mean": 1000, "max": 3000},
            "outputTokens": 20,
            "peakRequestsPerSecond": 1,
        },
        "deployments": [{"name": name, "aggregated": workers} for name in ("live", "night", "clicks")],
    }
    queue = {
        "name": "nightly",
        "model": "qwen3-8b",
        "workload": {"inputTokens": {"mean": 20_000, "max": 30_000}, "outputTokens": 100},
        "deployments": ["night"],
        "load": {"requestsPerDay": 8640},
        "rates": {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4},
    }
    spec["batch"] = {"queues": [queue]}


def on_ecs(spec: dict[str, Any]) -> None:
    apart(spec)
    spec["cluster"] = {"ecs": {}}


@pytest.fixture(params=[apart, on_ecs], ids=["EKS", "ECS"])
def templates(request: pytest.FixtureRequest, synthesise: Synthesise) -> Templates:
    return synthesise(request.param)


def test_requests_of_a_queue_come_in_at_an_address_of_their_own(templates: Templates) -> None:
    """Red if jobs reach the deployment of real time, or callers in real time that of the jobs."""
    rules = templates.properties("AWS::ElasticLoadBalancingV2::ListenerRule", STACK)
    found = {}
    for rule in rules:
        [host] = rule["Conditions"][0]["HostHeaderConfig"]["Values"]
        [action] = rule["Actions"]
        found[host] = [each["TargetGroupArn"]["Ref"] for each in action["ForwardConfig"]["TargetGroups"]]
    hosts = [f"qwen3-8b{way}.try.internal" for way in ("", "--batch", "--shopper")]
    assert found.keys() == set(hosts)
    for host, name in zip(hosts, ("live", "night", "clicks"), strict=True):
        [target] = found[host]
        assert name in target
    assert len({rule["Priority"] for rule in rules}) == 3


def test_batch_workers_send_to_that_address(templates: Templates) -> None:
    """Red if the workers have the address of the model: then the route is of no use."""
    assert "http://qwen3-8b--batch.try.internal" in json.dumps(templates.by_stack["Batch"])


def test_a_streaming_job_calls_its_own_deployments_and_no_other(templates: Templates) -> None:
    """Red if Flink has the address of the model, or another job that of this one."""
    for job, host in (("shopper", "qwen3-8b--shopper"), ("basket", "qwen3-8b")):
        [document] = documents(templates, job)
        found = StreamingJobConfiguration.from_json(document)
        assert found.endpoint.url == f"http://{host}.try.internal"
        assert set(re.findall(r"http://[^/\"]+", document)) == {found.endpoint.url}


def test_targets_wait_for_every_rule(templates: Templates) -> None:
    """ECS refuses a target group that no rule uses ("The target group ... does not have an associated load
    balancer", Amazon ECS Developer Guide, service event messages), and the first rule has one of two."""
    resources = templates.by_stack[STACK]["Resources"]
    rules = {
        name
        for name, each in resources.items()
        if each["Type"] == "AWS::ElasticLoadBalancingV2::ListenerRule"
    }
    waiting = [
        each
        for each in resources.values()
        if (each["Type"] == "AWS::ECS::Service" and each["Properties"].get("LoadBalancers"))
        or "TargetGroupBinding" in json.dumps(each.get("Properties", {}))
    ]
    assert waiting
    assert all(rules <= set(each["DependsOn"]) for each in waiting)


def test_a_job_is_refused_a_line_that_its_own_deployment_cannot_hold(templates: Templates) -> None:
    """Red if the shorter deployment of real time limits the lines, or 4 times the mean does."""
    [queue] = templates.asset_document("configuration.json")["queues"]
    assert queue["limits"]["requestTokens"] == 30_720
    # Its own tokens, at what its deployment completes: 200 prompt tokens for each token of an answer.
    capacity = queue["capacity"]
    assert capacity["inputTokensPerSecond"] == pytest.approx(200 * capacity["outputTokensPerSecond"])


# A queue whose deployments stay, with one that may have no workers.


def test_batch_knows_where_more_workers_come_at_times(synthesise_shipped: SynthesiseShipped) -> None:
    """Red if a request of anybody else may reach the deployment without workers, or batch never asks it."""
    found = synthesise_shipped("ads-reference")
    zone = "ads-reference.internal"
    rules = {
        rule["Conditions"][0]["HostHeaderConfig"]["Values"][0]: json.dumps(rule["Actions"])
        for rule in found.properties("AWS::ElasticLoadBalancingV2::ListenerRule", "reference-Model-product")
    }
    assert rules.keys() == {f"product.{zone}", f"product--batch-offpeak.{zone}"}
    assert "offpeak" not in rules[f"product.{zone}"]
    assert "steady" not in rules[f"product--batch-offpeak.{zone}"]
    batch = json.dumps(found.by_stack["reference-Batch"])
    assert f"http://product--batch-offpeak.{zone}" in batch
    assert "BATCH_LENT_ENDPOINTS" in batch
    assert "BATCH_CEILINGS_TABLE" not in batch, "those that stay would give way with those that go"
