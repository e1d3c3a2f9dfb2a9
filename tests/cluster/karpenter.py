"""Karpenter's controller on a control plane, and the platform's pools as it meets them here."""

from __future__ import annotations

import base64
import copy
from contextlib import AbstractContextManager

from inference_local.control_plane import artefacts, build
from inference_local.control_plane.control_plane import ControlPlane
from inference_local.processes.free_ports import free_ports
from tests.cluster.controller import controller
from tests.cluster.objects import IDENTIFIERS, KubernetesObject, manifests
from tests.cluster.simulated_ec2 import CLUSTER_NAME, CREDENTIALS, REGION, SimulatedEc2
from tests.templates.support import Templates

_KINDS = ("EC2NodeClass", "NodePool")


def karpenter(
    control_plane: ControlPlane, ec2: SimulatedEc2, **settings: str
) -> AbstractContextManager[None]:
    """Run Karpenter as long as a block lasts."""
    metrics, health = free_ports(2)
    authority = control_plane.authority.certificate.read_bytes()
    environment = {
        "AWS_ENDPOINT_URL": ec2.endpoint_url,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CLUSTER_NAME": CLUSTER_NAME,
        "CLUSTER_ENDPOINT": control_plane.address,
        "CLUSTER_CA_BUNDLE": base64.b64encode(authority).decode(),
        "BATCH_IDLE_DURATION": "500ms",
        "DISABLE_DRY_RUN": "true",
        "DISABLE_LEADER_ELECTION": "true",
        "FEATURE_GATES": "StaticCapacity=true",
        "HEALTH_PROBE_PORT": str(health),
        "ISOLATED_VPC": "true",
        "LOG_LEVEL": "info",
        "METRICS_PORT": str(metrics),
        "SYSTEM_NAMESPACE": "kube-system",
        **CREDENTIALS,
        **settings,
    }
    program = build.program(artefacts.KARPENTER, print) / "karpenter"
    return controller(control_plane, "karpenter", [program], health, **environment)


def pools_and_classes(templates: Templates, ec2: SimulatedEc2) -> list[KubernetesObject]:
    """NodePools and node classes of a platform, in the subnets of the simulated EC2; to be changed freely."""
    objects = [
        copy.deepcopy(each)
        for each in manifests(templates, {**IDENTIFIERS, **ec2.identifiers})
        if each["kind"] in _KINDS
    ]
    for each in objects:
        if each["kind"] == "EC2NodeClass":
            each["spec"]["subnetSelectorTerms"] = [{"id": subnet} for subnet in ec2.subnet_ids]
    return objects


def named(objects: list[KubernetesObject], kind: str) -> dict[str, KubernetesObject]:
    """The objects of a kind by name."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}
