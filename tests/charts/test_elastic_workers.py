"""Elastic workers: KEDA owns their number, and its ScaledObject says what the plan decided."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.autoscaling.scaled_object import CronTrigger, MetricTrigger, ScaledObject
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_contracts.metric_labels import PROMETHEUS_ADDRESS
from inference_local.manifests import validate_manifest
from tests.charts.llm_d import of_kind
from tests.charts.renderings import KUBERNETES_VERSION, Manifest, Render

Rendered = Callable[[dict[str, Any]], list[Manifest]]

DYNAMO: dict[str, Any] = yaml.safe_load((blueprints_directory() / "elastic-g6e.yaml").read_text("utf-8"))
LLM_D: dict[str, Any] = copy.deepcopy(DYNAMO)
LLM_D["spec"]["models"][0]["stack"] = {"llmD": {}}


def planned(document: dict[str, Any]) -> DeploymentPlan:
    return build_plan(parse_blueprint(json.dumps(document), "own.yaml").blueprint).models[0].deployments[0]


@pytest.fixture
def rendered(render: Render) -> Rendered:
    def run(document: dict[str, Any]) -> list[Manifest]:
        deployment = planned(document)
        manifests = render(deployment_values(deployment), deployment.release, deployment.chart)
        for manifest in manifests:
            assert validate_manifest(manifest, KUBERNETES_VERSION) == []
        return manifests

    return run


@pytest.mark.parametrize("document", [DYNAMO, LLM_D], ids=["dynamo", "llm-d"])
def test_the_scaled_object_says_what_the_plan_decided(rendered: Rendered, document: dict[str, Any]) -> None:
    [manifest] = of_kind(rendered(document), "ScaledObject")
    read = ScaledObject.read(manifest)
    [worker] = planned(document).workers
    scaling = worker.scaling
    assert scaling is not None
    assert (read.minimum, read.maximum, read.polling_seconds) == (2, 12, scaling.polling_seconds)
    measured = [each for each in read.triggers if isinstance(each, MetricTrigger)]
    assert [(each.name, each.query, each.target, each.metric_type) for each in measured] == [
        (each.name, each.query, each.target, each.metric_type) for each in scaling.triggers
    ]
    assert not any(each.empty_is_zero for each in measured), "a missing load must not end workers"
    [floor] = [each for each in read.triggers if isinstance(each, CronTrigger)]
    assert floor.replicas == 4
    assert read.fallback is not None
    assert (read.fallback.replicas, read.fallback.behaviour) == (4, "currentReplicasIfHigher")
    assert read.down.stabilisation_seconds == 300
    assert [(each.unit, each.value, each.period_seconds) for each in read.down.policies] == [
        ("Percent", 10, 60)
    ]
    addresses = {each["metadata"].get("serverAddress") for each in manifest["spec"]["triggers"]}
    assert addresses == {PROMETHEUS_ADDRESS, None}
    reasons = set(manifest["metadata"]["annotations"].values())
    assert reasons == {each.why for each in scaling.triggers}


def test_dynamo_s_operator_gives_the_number_to_keda(rendered: Rendered) -> None:
    manifests = rendered(DYNAMO)
    [graph] = of_kind(manifests, "DynamoGraphDeployment")
    parts = {each["name"]: each for each in graph["spec"]["components"]}
    assert parts["worker"]["scalingAdapter"] == {}
    assert "replicas" not in parts["worker"], "an upgrade would set the number of workers"
    assert "scalingAdapter" not in parts["frontend"]
    [scaled] = of_kind(manifests, "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"] == {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "name": f"{graph['metadata']['name']}-worker",
    }


def test_llm_d_s_workers_have_no_number_of_their_own(rendered: Rendered) -> None:
    manifests = rendered(LLM_D)
    [scaled] = of_kind(manifests, "ScaledObject")
    reference = scaled["spec"]["scaleTargetRef"]
    deployments = {each["metadata"]["name"]: each for each in of_kind(manifests, "Deployment")}
    assert (reference["apiVersion"], reference["kind"]) == ("apps/v1", "Deployment")
    assert "replicas" not in deployments[reference["name"]]["spec"]
    [budget] = [
        each
        for each in of_kind(manifests, "PodDisruptionBudget")
        if each["metadata"]["name"] == reference["name"]
    ]
    assert budget["spec"]["maxUnavailable"] == 1


def test_a_worker_on_several_nodes_is_scaled_as_a_group(render: Render) -> None:
    deployment = planned(LLM_D)
    values = deployment_values(deployment)
    [worker] = [each for each in values["processes"] if each["role"] == "worker"]
    worker["nodes"] = 2
    worker["followerArguments"] = ["--headless"]
    manifests = render(values, deployment.release, deployment.chart)
    [group] = of_kind(manifests, "LeaderWorkerSet")
    [scaled] = of_kind(manifests, "ScaledObject")
    assert "replicas" not in group["spec"]
    assert scaled["spec"]["scaleTargetRef"] == {
        "apiVersion": group["apiVersion"],
        "kind": "LeaderWorkerSet",
        "name": group["metadata"]["name"],
    }
