"""Pools: what Karpenter starts, how many, and how it takes them away."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from inference_catalog import node_facts
from inference_catalog.releases import shipped_releases
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates


def pool(**fields: Any) -> Any:
    """A change that gives the base document's pool other fields."""
    return lambda spec: spec["pools"][0].update(fields)


def spec_of(templates: Templates, kind: str, name: str = "l40s") -> dict[str, Any]:
    found: dict[str, Any] = templates.manifest("Capacity", kind, name)["spec"]
    return found


def requirements(templates: Templates) -> dict[str, list[str]]:
    node = spec_of(templates, "NodePool")["template"]["spec"]
    assert {each["operator"] for each in node["requirements"]} == {"In"}
    return {each["key"]: each["values"] for each in node["requirements"]}


def test_a_node_is_what_the_pool_says(base_templates: Templates) -> None:
    assert requirements(base_templates) == {
        "node.kubernetes.io/instance-type": ["g6e.2xlarge"],
        "karpenter.sh/capacity-type": ["on-demand"],
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
    }


@pytest.mark.parametrize(
    ("purchase", "capacity_types"),
    [
        ({"onDemand": {}}, ["on-demand"]),
        ({"spot": {}}, ["spot"]),
        ({"spot": {"onDemandFallback": True}}, ["spot", "on-demand"]),
    ],
)
def test_purchase(synthesise: Synthesise, purchase: dict[str, Any], capacity_types: list[str]) -> None:
    templates = synthesise(pool(purchase=purchase))
    assert requirements(templates)["karpenter.sh/capacity-type"] == capacity_types


def test_limits_are_nodes_times_accelerators(synthesise: Synthesise) -> None:
    templates = synthesise(pool(instanceTypes=["g6e.12xlarge", "g6e.48xlarge"], nodes={"max": 3}))
    assert spec_of(templates, "NodePool")["limits"] == {"nodes": "3", "nvidia.com/gpu": "24"}


def test_pods_find_the_pool_and_others_stay_away(base_templates: Templates) -> None:
    template = spec_of(base_templates, "NodePool")["template"]
    assert template["metadata"]["labels"] == {node_facts.POOL_LABEL: "l40s"}
    assert template["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]


def test_nodes_are_replaced_one_by_one_and_never_for_ever_in_the_way(base_templates: Templates) -> None:
    specification = spec_of(base_templates, "NodePool")
    disruption = specification["disruption"]
    assert disruption["consolidationPolicy"] == "WhenEmpty"
    assert all(budget["nodes"] not in {"0", "0%"} for budget in disruption["budgets"])
    assert {"nodes": "1", "reasons": ["Drifted"]} in disruption["budgets"]
    node = specification["template"]["spec"]
    assert (node["expireAfter"], node["terminationGracePeriod"]) == ("Never", "1h")


def test_instance_store_is_used_where_every_type_has_it(base_templates: Templates) -> None:
    node_class = spec_of(base_templates, "EC2NodeClass")
    assert node_class["instanceStorePolicy"] == "RAID0"
    assert "throughput" not in node_class["blockDeviceMappings"][1]["ebs"]


def test_volumes_are_fast_where_there_is_no_instance_store(synthesise: Synthesise) -> None:
    def without_nvme(spec: dict[str, Any]) -> None:
        spec["pools"][0].update(instanceTypes=["g5g.16xlarge"])
        spec["models"][0]["engine"] = {"vllm": {"args": {"dtype": "half"}}}
        spec["models"][0]["workload"]["peakRequestsPerSecond"] = 1
        spec["models"][0]["deployments"][0]["aggregated"]["tensorParallelSize"] = 2

    node_class = spec_of(synthesise(without_nvme), "EC2NodeClass")
    volume = node_class["blockDeviceMappings"][1]["ebs"]
    assert "instanceStorePolicy" not in node_class
    assert 600 <= volume["throughput"] <= 1000
    assert volume["iops"] * 0.25 >= volume["throughput"]


def test_small_images_of_routers_get_no_paid_throughput(base_templates: Templates) -> None:
    node_class = spec_of(base_templates, "EC2NodeClass", "inference-blueprints.system")
    assert not {"throughput", "iops"} & node_class["blockDeviceMappings"][1]["ebs"].keys()


def test_the_root_volume_holds_the_largest_image(base_templates: Templates) -> None:
    # os-image-size-gib of bottlerocket's variants/aws-k8s-1.37-nvidia/Cargo.toml.
    root = spec_of(base_templates, "EC2NodeClass")["blockDeviceMappings"][0]
    assert (root["deviceName"], root["ebs"]["volumeSize"]) == ("/dev/xvda", "6Gi")
    system = base_templates.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert [each["Ebs"]["VolumeSize"] for each in system["BlockDeviceMappings"]] == [6, 80]


def test_disk_size_is_the_blueprints(synthesise: Synthesise) -> None:
    node_class = spec_of(synthesise(pool(disk={"sizeGib": 321})), "EC2NodeClass")
    assert node_class["blockDeviceMappings"][1]["ebs"]["volumeSize"] == "321Gi"


def test_nodes_are_private_encrypted_and_keep_metadata_from_pods(base_templates: Templates) -> None:
    node_class = spec_of(base_templates, "EC2NodeClass")
    assert node_class["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }
    assert {each["ebs"]["encrypted"] for each in node_class["blockDeviceMappings"]} == {True}
    assert len(node_class["subnetSelectorTerms"]) == 3
    assert all("PrivateSubnet" in term["id"] for term in node_class["subnetSelectorTerms"])
    (group,) = node_class["securityGroupSelectorTerms"]
    assert "ClusterSecurityGroupId" in group["id"]


def test_images_are_pulled_in_parallel(base_templates: Templates) -> None:
    settings = tomllib.loads(spec_of(base_templates, "EC2NodeClass")["userData"])["settings"]
    assert settings["container-runtime"]["snapshotter"] == "soci"
    plug_in = settings["container-runtime-plugins"]["soci-snapshotter"]
    assert plug_in["pull-mode"] == "parallel-pull-unpack"
    assert plug_in["parallel-pull-unpack"]["max-concurrent-downloads-per-image"] > 3


def test_the_operating_system_is_pinned(base_templates: Templates) -> None:
    terms = [
        spec_of(base_templates, "EC2NodeClass", name)["amiSelectorTerms"]
        for name in ("l40s", "inference-blueprints.system")
    ]
    release = shipped_releases().bottlerocket.removeprefix("v")
    # With the version of Kubernetes in it, nodes do not follow the control plane by themselves.
    assert terms == [
        [{"ssmParameter": f"/aws/service/bottlerocket/aws-k8s-1.35{variant}/x86_64/{release}/image_id"}]
        for variant in ("-nvidia", "")
    ]


def test_routers_have_nodes_without_pool_label_and_taint(base_templates: Templates) -> None:
    template = spec_of(base_templates, "NodePool", "inference-blueprints.system")["template"]
    assert template["metadata"] == {}
    assert template["spec"]["taints"] == []


def test_one_manifest_a_pool(synthesise: Synthesise) -> None:
    templates = synthesise(
        lambda spec: spec["pools"].append({"name": "b", "instanceTypes": ["g6e.xlarge"], "nodes": {"max": 1}})
    )
    assert len(templates.resources("Custom::AWSCDK-EKS-KubernetesResource", "Capacity")) == 3
