"""Each node with NVIDIA accelerators has one DCGM engine and one exporter of its metrics.

A second engine on a node makes the EKS node monitoring agent report broken GPUs, and Karpenter replaces the
node
(https://github.com/aws/containers-roadmap/issues/2763). Three charts can run one: the node monitoring agent
(`dcgm-server`), the CloudWatch add-on, and NVIDIA's exporter unless it is given the address of another.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference_catalog.catalogue import shipped
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates

#: Port of the node monitoring agent's engine on each node (charts/eks-node-monitoring-agent v1.7.0,
#: templates/dcgm-daemonset.yaml, hostPort).
ENGINE_PORT = "5555"
#: Families on whose instances that chart runs its engine (values.yaml, `dcgmAgent.affinity`), amd64 only.
WITH_ENGINE = frozenset(
    {"g4dn", "g5", "g6", "g6e", "gr6", "g7", "g7e", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300"}
)


def nvidia_types() -> list[str]:
    """Return the catalogue's instance types with NVIDIA accelerators, except those with Arm processors.

    The chart runs no engine on Arm, so nor does the exporter there: these nodes have no GPU metrics.
    """
    types = shipped().instance_types.values()
    return sorted(
        each.name
        for each in types
        if each.accelerator and each.accelerator.manufacturer == "nvidia" and each.architecture == "amd64"
    )


@pytest.fixture(scope="module", params=[None, {}], ids=["without observability", "with observability"])
def templates(request: pytest.FixtureRequest, synthesise: Synthesise) -> Templates:
    return synthesise((lambda spec: spec.update(observability={})) if request.param is not None else None)


def add_on(templates: Templates, name: str) -> dict[str, Any] | None:
    """Return an add-on's configuration; None if it is not installed."""
    found = [each for each in templates.properties("AWS::EKS::Addon") if each["AddonName"] == name]
    return json.loads(found[0].get("ConfigurationValues", "{}")) if found else None


def releases(templates: Templates) -> dict[str, dict[str, Any]]:
    """Return the values of every chart by its name."""
    return {
        each["Chart"]: json.loads(each["Values"])
        for each in templates.properties("Custom::AWSCDK-EKS-HelmChart")
        if each.get("Chart") == "dcgm-exporter"
    }


def engines(templates: Templates) -> list[str]:
    """Return who runs a DCGM engine on a node with NVIDIA accelerators."""
    found = ["node monitoring agent"] if add_on(templates, "eks-node-monitoring-agent") is not None else []
    insights = add_on(templates, "amazon-cloudwatch-observability")
    if insights is not None and insights.get("dcgmExporter", {}).get("enabled", True):
        found.append("CloudWatch add-on")
    exporter = releases(templates).get("dcgm-exporter")
    if exporter is not None:
        variables = {each["name"]: each for each in exporter["extraEnv"]}
        host = variables["HOST_IP"]["valueFrom"]["fieldRef"]["fieldPath"]
        address = variables.get("DCGM_REMOTE_HOSTENGINE_INFO", {}).get("value")
        if (host, address) != ("status.hostIP", f"$(HOST_IP):{ENGINE_PORT}"):
            found.append("DCGM exporter")
    return found


def test_a_node_has_one_engine(templates: Templates) -> None:
    assert engines(templates) == ["node monitoring agent"]


def test_the_engine_runs_on_nodes_with_any_taint(templates: Templates) -> None:
    agent = add_on(templates, "eks-node-monitoring-agent")
    assert agent is not None
    assert agent["dcgmAgent"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize("name", nvidia_types())
def test_the_engine_runs_on_every_type_of_the_catalogue(name: str) -> None:
    assert name.partition(".")[0] in WITH_ENGINE


def test_the_exporter_runs_where_the_engine_runs(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec.update(observability={}))
    exporter = releases(templates)["dcgm-exporter"]
    rule = exporter["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["nodeSelectorTerms"] == [
        {
            "matchExpressions": [
                {
                    "key": "karpenter.k8s.aws/instance-gpu-manufacturer",
                    "operator": "In",
                    "values": ["nvidia"],
                },
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            ]
        }
    ]
    assert exporter["tolerations"] == [{"operator": "Exists"}]
