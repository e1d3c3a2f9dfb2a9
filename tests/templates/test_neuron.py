"""A platform on Neuron has AWS's device plug-in, and its scheduler where workers share a node."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml

from inference_blueprints.spec.source import shipped
from tests.templates.conftest import SynthesiseShipped
from tests.templates.support import Templates, text
from tests.templates.synthesis import write_templates
from tests.unit.render.ecs.one_word import on_ecs

#: Helm release of AWS's chart ``neuron-helm-chart``.
RELEASE = "neuron-device-plugin"


@pytest.fixture(scope="module")
def whole_nodes(synthesise_shipped: SynthesiseShipped) -> Templates:
    """Workers that have all devices of their node."""
    return synthesise_shipped("inf2")


@pytest.fixture(scope="module")
def shared_nodes(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Workers that have four of sixteen devices, on the oldest Kubernetes version."""
    blueprint = tmp_path_factory.mktemp("trn2") / "trn2.yaml"
    blueprint.write_text(shipped()["trn2"].read_text(encoding="utf-8").replace('"1.35"', '"1.34"'))
    return write_templates(blueprint, blueprint.parent / "cdk.out")


def values_of(templates: Templates) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(
        text(templates.charts("Platform")[RELEASE]["Properties"]["Values"])
    )
    return values


def test_the_device_plug_in_runs_on_every_node_of_the_pool(whole_nodes: Templates) -> None:
    """A node that it does not reach has no devices for Kubernetes, so pods stay pending."""
    values = values_of(whole_nodes)
    [requirement] = [
        each
        for each in whole_nodes.manifest("Capacity", "NodePool", "inferentia")["spec"]["template"]["spec"][
            "requirements"
        ]
        if each["key"] == "node.kubernetes.io/instance-type"
    ]
    assert values["neuronInstances"] == requirement["values"]
    assert values["devicePlugin"]["tolerations"] == [{"operator": "Exists"}]
    # The node monitoring agent of EKS does its work.
    assert values["npd"] == {"enabled": False}


def test_the_scheduler_is_installed_where_workers_share_a_node(
    whole_nodes: Templates, shared_nodes: Templates
) -> None:
    assert values_of(whole_nodes)["scheduler"]["enabled"] is False
    scheduler = values_of(shared_nodes)["scheduler"]
    assert scheduler["enabled"] is True
    model = text(next(iter(shared_nodes.charts("Model-llama-70b").values()))["Properties"]["Values"])
    assert f'"scheduler":"{scheduler["customScheduler"]["fullnameOverride"]}"' in model


def test_the_scheduler_has_the_minor_version_of_the_cluster(shared_nodes: Templates) -> None:
    """A newer one than the API server is not supported (kubernetes.io, Version Skew Policy)."""
    tag = values_of(shared_nodes)["scheduler"]["customScheduler"]["image"]["tag"]
    assert tag.startswith("v1.34.")
    assert "-eks-1-34-" in tag


def test_workers_may_open_their_devices(whole_nodes: Templates, base_templates: Templates) -> None:
    """Bottlerocket, QUICKSTART-EKS.md, Neuron Support: else the devices belong to root."""

    def settings(templates: Templates, pool: str) -> dict[str, Any]:
        found = templates.manifest("Capacity", "EC2NodeClass", pool)["spec"]["userData"]
        configured: dict[str, Any] = tomllib.loads(found)["settings"]
        return configured

    assert settings(whole_nodes, "inferentia")["kubernetes"] == {
        "device-ownership-from-security-context": True
    }
    assert "kubernetes" not in settings(base_templates, "l40s")


def test_a_platform_without_neuron_has_none_of_it(base_templates: Templates) -> None:
    assert RELEASE not in base_templates.charts("Platform")


def test_tasks_on_ecs_may_keep_their_artefacts_below_their_key_only(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """It turns red if a task may not store what it compiled, or may write anywhere else."""
    blueprint = tmp_path_factory.mktemp("ecs") / "inf2.yaml"
    blueprint.write_text(on_ecs("inf2"), encoding="utf-8")
    templates = write_templates(blueprint, blueprint.parent / "cdk.out")
    [definition] = [
        each["Properties"]
        for each in templates.resources("AWS::ECS::TaskDefinition", "Model-llama")
        if "artefacts-load" in json.dumps(each)
    ]
    [load] = [each for each in definition["ContainerDefinitions"] if each["Name"] == "artefacts-load"]
    variables = {each["Name"]: each["Value"] for each in load["Environment"]}
    [keep] = [
        statement
        for role in templates.resources("AWS::IAM::Role", "Model-llama")
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement.get("Sid") == "KeepArtefacts0"
    ]
    assert text(keep["Resource"]).endswith(f"/{variables['ARTEFACTS_KEY']}/*")
    assert "s3:DeleteObject" not in keep["Action"]
    assert json.dumps(variables["ARTEFACTS_BUCKET"]) in json.dumps(keep["Resource"])
