"""Schemas of custom resources: what the library writes passes, what no API server takes does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from inference_local.manifests import SCHEMA_DIRECTORY, validate_manifest

Manifest = dict[str, Any]
SCHEMAS = sorted(SCHEMA_DIRECTORY.glob("*.json"))

NODE_POOL: Manifest = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "l40s"},
    "spec": {
        "template": {
            "metadata": {"labels": {"inference-blueprints/pool": "l40s"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "l40s"},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6e.2xlarge"]}
                ],
                "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
            },
        },
        "limits": {"nvidia.com/gpu": "2"},
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m"},
    },
}
NODE_CLASS: Manifest = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "l40s"},
    "spec": {
        "role": "node",
        "amiSelectorTerms": [{"alias": "bottlerocket@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
        "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
        "instanceStorePolicy": "RAID0",
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvdb",
                "ebs": {"volumeSize": "200Gi", "volumeType": "gp3", "encrypted": True},
            }
        ],
    },
}
BINDING: Manifest = {
    "apiVersion": "elbv2.k8s.aws/v1beta1",
    "kind": "TargetGroupBinding",
    "metadata": {"name": "qwen3-8b-main", "namespace": "inference"},
    "spec": {
        "serviceRef": {"name": "qwen3-8b-main-frontend", "port": 8000},
        "targetGroupARN": "arn:aws:elasticloadbalancing:us-west-2:111122223333:targetgroup/a/b",
        "targetType": "ip",
    },
}
GOOD = (NODE_POOL, NODE_CLASS, BINDING)

BAD: list[tuple[Manifest, Callable[[Manifest], object], str]] = [
    (NODE_POOL, lambda pool: pool["spec"].update(taint=[]), "'taint' was unexpected"),
    (NODE_POOL, lambda pool: pool["spec"].pop("template"), "'template' is a required property"),
    (NODE_POOL, lambda pool: pool["spec"]["disruption"].update(consolidationPolicy="Never"), "is not one of"),
    (NODE_POOL, lambda pool: pool["spec"].update(weight="1"), "is not of type 'integer'"),
    (NODE_POOL, lambda pool: pool.update(status={}), "'status' was unexpected"),
    (NODE_POOL, lambda pool: pool["metadata"].update(name="L40S"), "does not match"),
    (NODE_CLASS, lambda node: node["spec"].update(instanceStorePolicy="RAID1"), "is not one of"),
    (NODE_CLASS, lambda node: node["spec"].update(amiFamily="AL1"), "is not one of"),
    (NODE_CLASS, lambda node: node["spec"]["blockDeviceMappings"][0]["ebs"].update(size=1), "was unexpected"),
    (BINDING, lambda binding: binding["spec"].pop("serviceRef"), "'serviceRef' is a required property"),
    (BINDING, lambda binding: binding["spec"].update(targetType="pod"), "is not one of"),
]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_a_schema_is_valid_names_its_source_and_licence_and_refuses_what_it_does_not_name(path: Any) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "Apache-2.0" in schema["$comment"]
    assert schema["additionalProperties"] is False
    api_version, kind = (schema["properties"][key]["const"] for key in ("apiVersion", "kind"))
    assert path.stem == f"{api_version.replace('/', '_')}_{kind}"


@pytest.mark.parametrize("manifest", GOOD, ids=lambda manifest: manifest["kind"])
def test_what_the_library_writes_passes(manifest: Manifest) -> None:
    assert validate_manifest(manifest, "1.35") == []


@pytest.mark.parametrize(("manifest", "change", "message"), BAD)
def test_what_no_cluster_takes_is_named(
    manifest: Manifest, change: Callable[[Manifest], object], message: str
) -> None:
    changed = copy.deepcopy(manifest)
    change(changed)
    assert [line for line in validate_manifest(changed, "1.35") if message in line]


def test_an_unknown_kind_is_a_failure() -> None:
    assert validate_manifest({**BINDING, "kind": "TargetGroupBond"}, "1.35")
