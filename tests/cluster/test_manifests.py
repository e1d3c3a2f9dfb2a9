"""The real API server takes everything that a platform creates, and refuses mistakes in words that help."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from inference_blueprints.operate.kubernetes import Kubectl, KubectlFailed
from inference_local.emulator.real_kubernetes.registry_charts import MODULE_CHARTS
from tests.cluster.objects import (
    KubernetesObject,
    component_deployments,
    manifests,
    module_chart,
    own_objects,
    releases,
    rendered,
)
from tests.templates.support import Templates

#: Charts that come in no Go module: their values are rendered by nobody here.
NOT_TO_BE_HAD = {
    "aws-efa-k8s-device-plugin",
    "aws-load-balancer-controller",
    "dcgm-exporter",
    "dynamo-platform",
    "karpenter-crd",
    "keda",
    "neuron-device-plugin",
    "nvidia-device-plugin",
    "prometheus",
}
#: Blueprints whose models have no router.
DIRECT = {"graviton-llama-cpp", "image-generation", "inf2", "trn2"}


def test_everything_that_a_platform_creates_is_taken(
    request: pytest.FixtureRequest, kubectl: Kubectl, platform: Templates
) -> None:
    applied, own = manifests(platform), own_objects(platform)
    deployments = component_deployments(own)
    # One call for all, since most of a call is kubectl's start.
    everything = [*applied, *own, *deployments, *_charts_out_of_modules(platform)]

    kubectl.check(everything)

    assert {each["kind"] for each in applied} >= {"EC2NodeClass", "NodePool", "TargetGroupBinding"}
    kinds = {each["kind"] for each in own}
    assert "PodDisruptionBudget" in kinds
    # Dynamo and llm-d have an object of their own per deployment, and a Deployment for what answers and for
    # each role. Servers that the load balancer asks directly are one Deployment.
    own_kinds = kinds & {"DynamoGraphDeployment", "InferencePool"}
    direct = request.node.callspec.params["platform"] in DIRECT
    assert bool(own_kinds) is not direct
    assert len(deployments) >= (1 if direct else 2)


def test_a_mirror_of_weights_is_among_them(matrix_platform: Templates) -> None:
    assert "Job" in {each["kind"] for each in own_objects(matrix_platform)}


def test_the_objects_of_elastic_workers_are_taken_and_a_mistake_in_them_is_not(
    kubectl: Kubectl, synthesise: Callable[[str], Templates]
) -> None:
    (scaled,) = [each for each in own_objects(synthesise("elastic-g6e")) if each["kind"] == "ScaledObject"]
    kubectl.check([scaled])
    broken = copy.deepcopy(scaled)
    broken["spec"].update(minReplicas=2)
    with pytest.raises(KubectlFailed, match=r'unknown field "spec\.minReplicas"|unknown field "minReplicas"'):
        kubectl.check([broken])


def _charts_out_of_modules(platform: Templates) -> list[KubernetesObject]:
    foreign = {
        name: release for name, release in releases(platform).items() if "ChartAssetURL" not in release
    }
    assert {"karpenter"} <= set(foreign) <= NOT_TO_BE_HAD | set(MODULE_CHARTS)
    return [
        kubernetes_object
        for name in sorted(set(foreign) & set(MODULE_CHARTS))
        for kubernetes_object in rendered(foreign[name], module_chart(name))
    ]


def _at(manifest: KubernetesObject, *path: Any) -> Any:
    for key in path:
        manifest = manifest[key]
    return manifest


#: What is broken, in an object of which kind, and what the server must say.
MISTAKES: dict[str, tuple[str, Callable[[KubernetesObject], object], str]] = {
    "an unknown field": (
        "NodePool",
        lambda it: it["spec"].update(limitz={"nodes": "1"}),
        r'unknown field "limitz" in sh\.karpenter\.v1\.NodePool\.spec',
    ),
    "a word that is not allowed": (
        "NodePool",
        lambda it: it["spec"]["disruption"].update(consolidationPolicy="WhenIdle"),
        r'consolidationPolicy: Unsupported value: "WhenIdle"',
    ),
    "a label that no instance type has": (
        "NodePool",
        lambda it: _at(it, "spec", "template", "spec", "requirements").append(
            {"key": "karpenter.k8s.aws/instance-famly", "operator": "In", "values": ["p5"]}
        ),
        r'label domain "karpenter\.k8s\.aws" is restricted',
    ),
    "a rule between fields": (
        "EC2NodeClass",
        lambda it: it["spec"].update(instanceProfile="another"),
        r"must specify exactly one of \['role', 'instanceProfile'\]",
    ),
    "a subnet that is none": (
        "EC2NodeClass",
        lambda it: it["spec"].update(subnetSelectorTerms=[{"id": "subnet_1"}]),
        r'subnetSelectorTerms\[0\]\.id: Invalid value: "subnet_1"',
    ),
    "a target type that is none": (
        "TargetGroupBinding",
        lambda it: it["spec"].update(targetType="pod"),
        r'targetType: Unsupported value: "pod"',
    ),
    "a component's role that is none": (
        "DynamoGraphDeployment",
        lambda it: _at(it, "spec", "components", 0).update(type="router"),
        r'spec\.components\[0\]\.type: Unsupported value: "router"',
    ),
    "an unknown field of a graph": (
        "DynamoGraphDeployment",
        lambda it: _at(it, "spec", "components", 0).update(replicaz=2),
        r'unknown field "replicaz" in .*components',
    ),
    "a field that is not of Kubernetes": (
        "Deployment",
        lambda it: _at(it, "spec", "template", "spec").update(tolerance=[]),
        r'unknown field "tolerance" in .*PodSpec',
    ),
    "a budget of two minds": (
        "PodDisruptionBudget",
        lambda it: it["spec"].update(minAvailable=1),
        r"minAvailable and maxUnavailable cannot be both set",
    ),
}


@pytest.fixture(scope="module")
def examples(matrix_platform: Templates) -> dict[str, KubernetesObject]:
    """One good object of each kind."""
    models = own_objects(matrix_platform)
    every = [*manifests(matrix_platform), *models, *component_deployments(models)]
    return {each["kind"]: each for each in every}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_its_place(
    mistake: str, kubectl: Kubectl, examples: dict[str, KubernetesObject]
) -> None:
    kind, break_it, words = MISTAKES[mistake]
    broken = copy.deepcopy(examples[kind])
    break_it(broken)

    with pytest.raises(KubectlFailed) as refusal:
        kubectl.check([broken])

    assert re.search(words, str(refusal.value)), str(refusal.value)
