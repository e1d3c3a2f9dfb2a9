"""Deployments on Dynamo, and the parts of what their chart renders."""

from __future__ import annotations

import copy
from functools import cache

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.source import shipped
from tests.charts.llm_d import HUB_ARN, of_kind
from tests.charts.renderings import Manifest

CHART = "dynamo-model"


@cache
def shipped_deployments() -> tuple[DeploymentPlan, ...]:
    """Return every deployment of every shipped blueprint that runs on EKS."""
    blueprints = [load_blueprint(name).blueprint for name in shipped()]
    return tuple(
        deployment
        for blueprint in blueprints
        if blueprint.spec.cluster.eks
        for model in build_plan(blueprint).models
        for deployment in model.deployments
    )


#: Every shipped deployment of the chart, by release, which is also the name of its reviewed rendering.
DEPLOYMENTS = {each.release: each for each in shipped_deployments() if each.chart == CHART}

#: Deployments that have every kind of process between them, which a test below checks. The renderings of all
#: deployments are generated and reviewed.
UNLIKE = (
    "qwen3-8b-main",  # a worker has its node to itself and loads from the Hub
    "qwen3-8b-shared",  # scaled workers share a node's copy of the weights, and the frontend reads a file
    "qwen3-32b-h200",  # nodes of a capacity block, with a taint of their own
    "qwen3-32b-main",  # prefill and decode, which exchange KV cache over EFA and stand beside each other
    "kimi-k2-ranks",  # a worker on two nodes, with weights from the platform's bucket
)


def components(manifests: list[Manifest]) -> dict[str, Manifest]:
    [graph] = of_kind(manifests, "DynamoGraphDeployment")
    return {component["name"]: component for component in graph["spec"]["components"]}


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    return {name: component["podTemplate"]["spec"] for name, component in components(manifests).items()}


def main_container(pod: Manifest) -> Manifest:
    [container] = pod["containers"]
    assert container["name"] == "main", "the operator merges its own defaults into the container of this name"
    return dict(container)


def with_secret(values: Manifest) -> Manifest:
    changed = copy.deepcopy(values)
    changed["secrets"] = [{"key": "HF_TOKEN", "arn": HUB_ARN}]
    changed["processes"][1]["environment"].append({"name": "HF_TOKEN", "secret": "HF_TOKEN"})
    return changed
