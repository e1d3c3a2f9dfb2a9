"""Creates KWOK nodes for managed node groups, with the capacity of their instance type in the catalogue.

ministack only records node groups. A pod on a KWOK node has the status running, but runs no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ministack.services import ec2, eks
from ministack.services.cloudformation import provisioners

import inference_catalog as catalog
from inference_local.control_plane.control_plane import FAKE_NODE_ANNOTATION
from inference_local.emulator.real_kubernetes.clusters import Hosts
from inference_local.emulator.resource_handlers.registry import Made, Properties

RESOURCE_TYPE = "AWS::EKS::Nodegroup"
#: Label of the nodes of a node group on EKS (Amazon EKS user guide, "Managed node groups").
NODE_GROUP_LABEL = "eks.amazonaws.com/nodegroup"
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}


class NodeGroups:
    """CloudFormation handlers that create node groups and their nodes."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._plain = dict(provisioners._RESOURCE_HANDLERS[RESOURCE_TYPE])

    def create(self, logical_id: str, properties: Properties, stack: str) -> Made:
        """Create a node group and its nodes."""
        name, attributes = self._plain["create"](logical_id, properties, stack)
        self._set_nodes(name, properties)
        return name, attributes

    def update(
        self,
        identifier: str,
        old: Properties,
        new: Properties,
        stack: str,
        logical_id: str | None = None,
    ) -> Made:
        """Change a node group, and create or remove nodes to match its size."""
        name, attributes = self._plain["update"](identifier, old, new, stack, logical_id=logical_id)
        if name != identifier:
            self._remove_nodes(identifier, old["ClusterName"], keep=frozenset())
        self._set_nodes(name, new)
        return name, attributes

    def delete(self, identifier: str, properties: Properties) -> None:
        """Remove a node group and its nodes, unless the cluster is deleted already."""
        if properties["ClusterName"] in eks._clusters:
            self._remove_nodes(identifier, properties["ClusterName"], keep=frozenset())
        self._plain["delete"](identifier, properties)

    def _set_nodes(self, name: str, properties: Properties) -> None:
        cluster = properties["ClusterName"]
        nodes = _nodes(eks._nodegroups[f"{cluster}/{name}"], properties)
        kubectl = self._hosts.of(cluster).plane.kubectl
        kubectl.apply(nodes)
        self._remove_nodes(name, cluster, keep=frozenset(node["metadata"]["name"] for node in nodes))

    def _remove_nodes(self, name: str, cluster: str, *, keep: frozenset[str]) -> None:
        kubectl = self._hosts.of(cluster).plane.kubectl
        existing = kubectl.get("nodes", "--selector", f"{NODE_GROUP_LABEL}={name}")
        surplus = [node["metadata"]["name"] for node in existing if node["metadata"]["name"] not in keep]
        if surplus:
            kubectl.run("delete", "nodes", *surplus)


def _nodes(group: Mapping[str, Any], properties: Properties) -> list[dict[str, Any]]:
    instance_type = catalog.instance_type(_instance_type(properties))
    name = group["nodegroupName"]
    capacity = _capacity(instance_type)
    zones = [ec2._subnets[subnet]["AvailabilityZone"] for subnet in group["subnets"]]
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"{name.lower()}-{number}",
                "annotations": FAKE_NODE_ANNOTATION,
                "labels": {
                    NODE_GROUP_LABEL: name,
                    "kubernetes.io/arch": instance_type.architecture,
                    "kubernetes.io/hostname": f"{name.lower()}-{number}",
                    "kubernetes.io/os": "linux",
                    "node.kubernetes.io/instance-type": instance_type.name,
                    "topology.kubernetes.io/zone": zones[number % len(zones)],
                    **group["labels"],
                },
            },
            "spec": {
                "taints": [
                    {
                        "key": taint["key"],
                        "value": taint.get("value", ""),
                        "effect": _EFFECTS[taint["effect"]],
                    }
                    for taint in group["taints"]
                ]
            },
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        for number in range(group["scalingConfig"]["desiredSize"])
    ]


def _instance_type(properties: Properties) -> str:
    """Return the first instance type of the group or of its launch template."""
    if properties.get("InstanceTypes"):
        return str(properties["InstanceTypes"][0])
    template = ec2._launch_templates[properties["LaunchTemplate"]["Id"]]
    return str(template["Versions"][-1]["LaunchTemplateData"]["InstanceType"])


def _capacity(instance_type: catalog.InstanceType) -> dict[str, str]:
    capacity = {
        "cpu": str(instance_type.vcpu),
        "memory": f"{instance_type.memory_mib}Mi",
        "pods": str(instance_type.max_pods),
    }
    if instance_type.device_resource:
        capacity[instance_type.device_resource] = str(instance_type.device_count)
    if instance_type.efa_interfaces:
        capacity["vpc.amazonaws.com/efa"] = str(instance_type.efa_interfaces)
    return capacity


def apply(hosts: Hosts) -> None:
    """Register node groups in the emulator's CloudFormation."""
    groups = NodeGroups(hosts)
    provisioners._RESOURCE_HANDLERS[RESOURCE_TYPE] |= {
        "create": groups.create,
        "update": groups.update,
        "delete": groups.delete,
    }
