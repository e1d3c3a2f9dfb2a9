"""Nodes as the catalogue and the platform's NodePools shape them, run by KWOK."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import inference_catalog as catalog
from inference_local.control_plane.control_plane import FAKE_NODE_ANNOTATION

EFA_RESOURCE = "vpc.amazonaws.com/efa"
#: What kubelet is told that a node may hold.
PODS = 110
#: The volume of nodes without NVMe: larger than any that the blueprints ask for.
EBS = "1000Gi"


def allocatable(instance_type: catalog.InstanceType) -> dict[str, str]:
    """What pods get of a node: less Karpenter's 7.5 % for the hypervisor, and what the kubelet keeps on EKS.

    255 MiB and 11 MiB a pod, 100 MiB for eviction; of processors 6 %, 1 %, twice 0.5 % and 0.25 % of the
    first, the second, the next two and the others (Karpenter's AWS provider, kubeReservedResources).
    """
    reserved_mib = 255 + 11 * PODS + 100
    shares = [0.06, 0.01, 0.005, 0.005] + [0.0025] * (instance_type.vcpu - 4)
    reserved_millicores = round(1000 * sum(shares[: instance_type.vcpu]))
    resources = {
        "cpu": f"{instance_type.vcpu * 1000 - reserved_millicores}m",
        "memory": f"{int(instance_type.memory_mib * (1 - 0.075)) - reserved_mib}Mi",
        "ephemeral-storage": str(instance_type.local_nvme_gb * 10**9) if instance_type.local_nvme_gb else EBS,
        "pods": str(PODS),
    }
    if resource := instance_type.device_resource:
        resources[resource] = str(instance_type.device_count)
    if instance_type.efa_interfaces:
        resources[EFA_RESOURCE] = str(instance_type.efa_interfaces)
    return resources


def node(
    name: str,
    instance_type: catalog.InstanceType,
    *,
    labels: Mapping[str, str],
    taints: list[dict[str, str]],
    zone: str = "us-west-2a",
) -> dict[str, Any]:
    """One node of an instance type."""
    resources = allocatable(instance_type)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": FAKE_NODE_ANNOTATION,
            "labels": {
                "kubernetes.io/arch": instance_type.architecture,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": instance_type.name,
                "topology.kubernetes.io/zone": zone,
                **labels,
            },
        },
        "spec": {"taints": taints},
        "status": {"capacity": resources, "allocatable": resources},
    }


def nodes_of(
    pool: Mapping[str, Any], count: int, *, prefix: str = "", zones: Sequence[str] = ("us-west-2a",)
) -> list[dict[str, Any]]:
    """Nodes of a NodePool, as Karpenter would make them: its first instance type, its labels, its taints.

    They are in each of the zones in turn, and named after the pool.
    """
    template = pool["spec"]["template"]
    requirements = {
        each["key"]: each["values"] for each in template["spec"]["requirements"] if "values" in each
    }
    instance_type = catalog.instance_type(requirements["node.kubernetes.io/instance-type"][0])
    name = pool["metadata"]["name"]
    labels = {**template["metadata"].get("labels", {}), "karpenter.sh/nodepool": name}
    taints = template["spec"].get("taints", [])
    return [
        node(f"{prefix}{name}-{number}", instance_type, labels=labels, taints=taints, zone=zone)
        for number, zone in zip(range(count), itertools.cycle(zones), strict=False)
    ]
