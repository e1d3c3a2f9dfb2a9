"""A pool on AL2023 has everything that a pool on Bottlerocket has, in AL2023's form."""

from __future__ import annotations

import copy
import email
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.spec.lock.lock import Lock, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text
from inference_catalog.catalogue import shipped
from inference_catalog.releases import NodeImage, shipped_releases
from inference_local.manifests import validate_manifest
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, text
from tests.templates.synthesis import write_templates

AL2023 = shipped_releases().al2023


def change(**fields: Any) -> Any:
    """A change that gives the base document a pool of p5en and workers that move KV cache over EFA."""

    def apply(spec: dict[str, Any]) -> None:
        spec["pools"][0].update({"instanceTypes": ["p5en.48xlarge"], "efa": True, **fields})
        roles = {
            role: {"pool": "l40s", "replicas": 2, "tensorParallelSize": 1} for role in ("prefill", "decode")
        }
        spec["models"][0]["deployments"] = [{"name": "main", "disaggregated": roles}]

    return apply


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(change())


@pytest.fixture(scope="module")
def spec(templates: Templates) -> dict[str, Any]:
    found: dict[str, Any] = templates.manifest("Capacity", "EC2NodeClass", "l40s")["spec"]
    return found


@pytest.fixture(scope="module")
def on_bottlerocket(synthesise: Synthesise) -> dict[str, Any]:
    """The same pool for workers that have a whole node."""

    def whole(spec: dict[str, Any]) -> None:
        change()(spec)
        for workers in spec["models"][0]["deployments"][0]["disaggregated"].values():
            workers["tensorParallelSize"] = 8

    found: dict[str, Any] = synthesise(whole).manifest("Capacity", "EC2NodeClass", "l40s")["spec"]
    return found


def parts(spec: dict[str, Any]) -> dict[str, str]:
    """Return the parts of the user data by content type, as a MIME reader finds them."""
    message = email.message_from_string(spec["userData"])
    assert message.is_multipart()
    return {
        part.get_content_type(): str(part.get_payload()) for part in message.walk() if part is not message
    }


def test_the_image_is_pinned_with_its_version_of_kubernetes(spec: dict[str, Any]) -> None:
    # Karpenter 1.14.1, pkg/providers/amifamily/al2023.go: the parameters behind the alias al2023@VERSION.
    name = f"amazon-eks-node-al2023-x86_64-nvidia-1.35-{AL2023}"
    parameter = f"/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia/{name}/image_id"
    assert (spec["amiFamily"], spec["amiSelectorTerms"]) == ("AL2023", [{"ssmParameter": parameter}])


def test_a_held_pool_keeps_its_version_of_kubernetes(base: dict[str, Any], tmp_path: Path) -> None:
    document = copy.deepcopy(base)
    change()(document["spec"])
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump(document))
    held = {"l40s": NodeImage("1.34", shipped_releases().bottlerocket, AL2023)}
    lock_path(mine).write_text(lock_text(Lock(release="0.1.0", held_pools=held)))
    templates = write_templates(mine, tmp_path / "cdk.out")
    [term] = templates.manifest("Capacity", "EC2NodeClass", "l40s")["spec"]["amiSelectorTerms"]
    assert (
        f"/1.34/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.34-{AL2023}/"
        in (term["ssmParameter"])
    )


def test_only_the_fields_of_the_operating_system_differ(
    spec: dict[str, Any], on_bottlerocket: dict[str, Any]
) -> None:
    assert on_bottlerocket["amiFamily"] == "Bottlerocket"
    own = {"amiFamily", "amiSelectorTerms", "blockDeviceMappings", "kubelet", "userData"}
    assert {key: spec[key] for key in spec.keys() - own} == {
        key: on_bottlerocket[key] for key in on_bottlerocket.keys() - own
    }
    assert spec["metadataOptions"]["httpTokens"] == "required"
    assert spec["instanceStorePolicy"] == "RAID0"
    assert len(spec["networkInterfaces"]) == 17


def test_the_one_volume_holds_the_operating_system_and_the_data(
    spec: dict[str, Any], on_bottlerocket: dict[str, Any]
) -> None:
    [volume] = spec["blockDeviceMappings"]
    _, data = on_bottlerocket["blockDeviceMappings"]
    system = shipped().operating_systems["al2023"].root_volume_gib
    # Karpenter 1.14.1, EphemeralBlockDevice of pkg/providers/amifamily/al2023.go.
    assert volume["deviceName"] == "/dev/xvda"
    assert volume["ebs"]["encrypted"] is True
    assert volume["ebs"]["volumeSize"] == f"{system + int(data['ebs']['volumeSize'][:-2])}Gi"
    assert {**data["ebs"], "volumeSize": volume["ebs"]["volumeSize"]} == volume["ebs"]


def test_kubelet_reserves_what_the_plan_subtracts(
    spec: dict[str, Any], on_bottlerocket: dict[str, Any]
) -> None:
    # Without it, AL2023 would reserve for the pods that the interfaces of a type allow (Karpenter 1.14.1,
    # UsesENILimitedMemoryOverhead; amazon-eks-ami, nodeadm/internal/kubelet/config.go).
    assert spec["kubelet"] == {**on_bottlerocket["kubelet"], "kubeReserved": {"memory": "1465Mi"}}


def test_images_are_pulled_in_parallel_and_pods_may_lock_memory(spec: dict[str, Any]) -> None:
    config = yaml.safe_load(parts(spec)["application/node.eks.aws"])
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert config["spec"]["featureGates"] == {"FastImagePull": True}
    limits = config["spec"]["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]
    by_type = {each["type"]: each for each in limits}
    assert by_type.keys() == {"RLIMIT_NOFILE", "RLIMIT_MEMLOCK"}
    locked = by_type["RLIMIT_MEMLOCK"]
    maximum = max(each.memory_mib for each in shipped().instance_types.values()) * 2**20
    for bytes_ in (locked["soft"], locked["hard"]):
        # nodeadm reads numbers as floats; containerd reads them as unsigned integers of 64 bits.
        assert bytes_ > maximum
        assert int(float(bytes_)) == bytes_


@pytest.mark.thorough
def test_no_memory_is_set_aside_as_huge_pages(spec: dict[str, Any], tmp_path: Path) -> None:
    script = parts(spec)["text/x-shellscript"]
    assert script.startswith("#!/bin/bash\n")
    folder = tmp_path / "sysctl.d"
    folder.mkdir()
    (tmp_path / "sysctl").write_text('#!/bin/sh\ncat "$2" >> "$OUT"\n')
    (tmp_path / "sysctl").chmod(0o755)
    out = tmp_path / "out"
    subprocess.run(
        ["/bin/bash", "-c", script.replace("/etc/sysctl.d", str(folder))],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "OUT": str(out)},
        check=True,
    )
    assert out.read_text() == "vm.nr_hugepages = 0\n"


def test_the_device_plug_in_runs_where_the_image_has_none(
    templates: Templates, base_templates: Templates, synthesise: Synthesise
) -> None:
    values = yaml.safe_load(
        text(templates.charts("Platform")["nvidia-device-plugin"]["Properties"]["Values"])
    )
    [term] = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    [rule] = term["matchExpressions"]
    node = templates.manifest("Capacity", "NodePool", "l40s")["spec"]["template"]["metadata"]
    assert rule["operator"] == "In"
    assert [node["labels"][rule["key"]]] == rule["values"]
    # Amazon EKS User Guide, "Manage EFA devices on Amazon EKS": else it mounts all of /dev/infiniband.
    assert values["mofedEnabled"] is False
    for others in (base_templates, synthesise(change(efa=False))):
        assert "nvidia-device-plugin" not in others.charts("Platform")
        label = others.manifest("Capacity", "NodePool", "l40s")["spec"]["template"]["metadata"]["labels"]
        assert rule["key"] not in label
    router_nodes = templates.manifest("Capacity", "NodePool", "inference-blueprints.system")["spec"]
    assert rule["key"] not in router_nodes["template"]["metadata"].get("labels", {})


def test_karpenter_takes_both_objects(templates: Templates) -> None:
    objects = [each for each in templates.manifests("Capacity") if each["metadata"]["name"] == "l40s"]
    assert {each["kind"] for each in objects} == {"EC2NodeClass", "NodePool"}
    [found] = [each["spec"] for each in objects if each["kind"] == "EC2NodeClass"]
    # CloudFormation fills these in.
    for key, known in (("securityGroupSelectorTerms", "sg-0a1b"), ("subnetSelectorTerms", "subnet-0a1b")):
        assert all("${" in term["id"] for term in found[key])
        found[key] = [{"id": known}]
    assert [problem for each in objects for problem in validate_manifest(each, "1.35")] == []
