"""The table of parts says what a deployment to the emulator was, with a control plane and without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference_local.emulator.emulator_parts import describe


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    chart = "Custom::AWSCDK-EKS-HelmChart"
    resources = {
        "Cluster": {"Type": "AWS::EKS::Cluster", "Properties": {}},
        "Entry": {"Type": "AWS::EKS::AccessEntry", "Properties": {}},
        "Address": {"Type": "AWS::EC2::EIP", "Properties": {}},
        "Karpenter": {"Type": chart, "Properties": {"Chart": "karpenter"}},
        "Dynamo": {"Type": chart, "Properties": {"Chart": "dynamo-platform"}},
        "Own": {"Type": chart, "Properties": {"ChartAssetURL": "s3://x"}},
    }
    (tmp_path / "x.template.json").write_text(json.dumps({"Resources": resources}))
    return tmp_path


def states(assembly: Path, *, control_plane: bool) -> dict[str, tuple[str, str]]:
    parts = describe(assembly, (), control_plane=control_plane)
    return {part.name: (part.state, part.detail) for part in parts}


def test_with_a_control_plane_the_api_is_real_and_the_nodes_are_not(assembly: Path) -> None:
    found = states(assembly, control_plane=True)
    assert found["Kubernetes API"][0] == "real"
    assert found["Nodes"][0] == "stubbed"
    assert "AWS::EKS::AccessEntry" not in found
    assert found["AWS::EC2::EIP"][0] == "stubbed"
    assert found["Third-party charts"] == ("real", "installed from their Go modules: karpenter")
    assert found["Third-party charts without a package"][1].endswith(": dynamo-platform")


def test_a_cache_is_a_real_valkey_behind_an_emulated_proxy(assembly: Path) -> None:
    assert "Signal store" not in states(assembly, control_plane=False)
    resources = {"Cache": {"Type": "AWS::ElastiCache::ServerlessCache", "Properties": {}}}
    # The cache of a front door is no signal store, and the local door has a row for its own.
    (assembly / "x-FrontDoor.template.json").write_text(json.dumps({"Resources": resources}))
    assert "Signal store" not in states(assembly, control_plane=False)
    (assembly / "stores.template.json").write_text(json.dumps({"Resources": resources}))
    found = states(assembly, control_plane=False)
    assert found["Signal store"][0] == "real"
    assert found["Signal store's proxy"][0] == "emulated"


def test_without_one_kubernetes_and_access_entries_are_stubbed(assembly: Path) -> None:
    found = states(assembly, control_plane=False)
    assert found["Kubernetes"][0] == "stubbed"
    assert found["AWS::EKS::AccessEntry"][0] == "stubbed"
    assert "Nodes" not in found


def test_on_ecs_tasks_are_recorded_and_nothing_is_said_of_kubernetes(tmp_path: Path) -> None:
    resources = {
        "Capacity": {"Type": "AWS::ECS::CapacityProvider", "Properties": {}},
        "Worker": {"Type": "AWS::ECS::Service", "Properties": {}},
        "Frontend": {"Type": "AWS::ECS::Service", "Properties": {}},
        "Task": {"Type": "AWS::ECS::TaskDefinition", "Properties": {}},
    }
    (tmp_path / "x.template.json").write_text(json.dumps({"Resources": resources}))
    found = states(tmp_path, control_plane=False)
    assert found["Amazon ECS"][0] == "stubbed"
    assert found["Amazon ECS"][1].startswith("2 services and 1 task definitions are recorded; no task runs")
    assert found["AWS::ECS::CapacityProvider"][0] == "stubbed"
    assert "Kubernetes" not in found
