"""A pool of nodes that Karpenter starts and terminates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_catalog import InstanceType, node_facts
from inference_catalog.addresses import PODS_PER_NODE
from inference_catalog.catalogue import shipped
from inference_catalog.image_cache import DATA_DEVICE, INITIALIZATION_MIB_PER_SECOND
from inference_catalog.node_facts import (
    FREE_GP3_OPERATIONS,
    OPERATIONS_PER_MIB_PER_SECOND,
    efa_layout,
    efa_layouts_are_one,
    gp3_mib_per_second,
)
from inference_catalog.node_images import NEURON_RESOURCE, NVIDIA_RESOURCE, image_parameter
from inference_catalog.operating_system import KUBE_RESERVED_MIB, OperatingSystem
from inference_catalog.releases import NodeImage
from inference_constructs.capacity import node_settings
from inference_constructs.capacity.reserved_instances import ReservedInstances

Manifest = dict[str, Any]

_ROOT_DEVICE = "/dev/xvda"


@dataclass(frozen=True)
class PoolProperties:
    """One pool of interchangeable nodes."""

    name: str
    """Name of the NodePool and its node class, and value of the pool label."""
    instance_types: Sequence[InstanceType]
    """Instance types of one architecture, all with the same accelerator or all without one."""
    image: NodeImage
    """Image that nodes boot. It is pinned, because Karpenter replaces nodes whose image changes."""
    capacity_types: Sequence[str]
    """Karpenter's capacity types: ``on-demand``, ``spot``, ``reserved``. Karpenter prefers spot to
    on-demand."""
    max_nodes: int
    """Maximum number of nodes."""
    disk_gib: int
    """EBS data volume of a node in GiB."""
    system: OperatingSystem = field(default_factory=lambda: shipped().bottlerocket)
    """Operating system of the nodes; Bottlerocket unless it is given."""
    min_nodes: int = 0
    """Number of nodes that always run, even if no pod needs them."""
    reserved: ReservedInstances | None = None
    """Reserved capacity, for the capacity type ``reserved``."""
    availability_zone: str | None = None
    """Name of the only zone of its nodes; None for any zone."""
    efa: bool = False
    """Whether nodes start with all their EFA interfaces."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    """`labels`, `taints`: The user's labels and taints, in addition to the library's. Taints are in
    Kubernetes' format."""
    labelled: bool = True
    """Whether nodes have the pool label. Pods that select no pool run on nodes without it."""
    image_snapshot_id: str | None = None
    """Snapshot for the data volume; None for an empty volume."""

    @property
    def uses_instance_store(self) -> bool:
        """Whether images are stored on local NVMe: all types have it, and no snapshot is used."""
        return not self.image_snapshot_id and all(each.local_nvme_gb for each in self.instance_types)


@dataclass(frozen=True)
class NodeProperties:
    """Properties that all nodes of a platform share."""

    role_name: str
    """Role of the nodes."""
    subnet_ids: Sequence[str]
    security_group_ids: Sequence[str]
    """`subnet_ids`, `security_group_ids`: Subnets and security groups of the nodes."""
    efa_security_group_ids: Sequence[str] = ()
    """Additional security groups that let EFA interfaces reach each other."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of instances and volumes."""


def node_class(pool: PoolProperties, nodes: NodeProperties) -> Manifest:
    """Return the EC2NodeClass of a pool.

    nodes: Properties that all nodes share.
    """
    groups = [*nodes.security_group_ids, *(nodes.efa_security_group_ids if pool.efa else ())]
    on_al2023 = pool.system.name == "al2023"
    specification = {
        "amiFamily": pool.system.ami_family,
        **(_al2023(pool) if on_al2023 else _bottlerocket(pool)),
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "role": nodes.role_name,
        "securityGroupSelectorTerms": [{"id": group} for group in groups],
        "subnetSelectorTerms": [{"id": subnet} for subnet in nodes.subnet_ids],
        "tags": dict(nodes.tags),
        "userData": node_settings.user_data() if on_al2023 else _bottlerocket_settings(pool),
        **_network_interfaces(pool),
    }
    if pool.uses_instance_store:
        specification["instanceStorePolicy"] = "RAID0"
    if pool.reserved:
        specification["capacityReservationSelectorTerms"] = [dict(pool.reserved.selector)]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": pool.name},
        "spec": specification,
    }


def _bottlerocket_settings(pool: PoolProperties) -> str:
    """Return the user data of a pool on Bottlerocket."""
    neuron = pool.instance_types[0].device_resource == NEURON_RESOURCE
    return node_settings.settings(efa=pool.efa, neuron=neuron)


def _bottlerocket(pool: PoolProperties) -> Manifest:
    """Return image, volumes and kubelet's settings of Bottlerocket, which has a second volume for data."""
    nvidia = pool.instance_types[0].device_resource == NVIDIA_RESOURCE
    parameter = image_parameter(
        pool.image, "bottlerocket", pool.instance_types[0].architecture, nvidia=nvidia
    )
    return {
        "amiSelectorTerms": [{"ssmParameter": parameter}],
        "blockDeviceMappings": [
            _volume(_ROOT_DEVICE, pool.system.root_volume_gib),
            _volume(DATA_DEVICE, pool.disk_gib, **_image_volume(pool)),
        ],
        "kubelet": {"maxPods": PODS_PER_NODE},
    }


def _al2023(pool: PoolProperties) -> Manifest:
    """Return image, volumes and kubelet's settings of AL2023, which has one volume for itself and data."""
    parameter = image_parameter(pool.image, "al2023", pool.instance_types[0].architecture, nvidia=True)
    size_gib = pool.system.root_volume_gib + pool.disk_gib
    return {
        "amiSelectorTerms": [{"ssmParameter": parameter}],
        "blockDeviceMappings": [_volume(_ROOT_DEVICE, size_gib, **_image_volume(pool))],
        "kubelet": {"kubeReserved": {"memory": f"{KUBE_RESERVED_MIB}Mi"}, "maxPods": PODS_PER_NODE},
    }


def node_pool(pool: PoolProperties) -> Manifest:
    """Return the NodePool of the nodes that pods request."""
    return _node_pool(pool, pool.name, {"disruption": _disruption(pool), "limits": _limits(pool)})


def kept_node_pool(pool: PoolProperties) -> Manifest:
    """Return the NodePool of the nodes that always run. Karpenter accepts only a limit on nodes for it.

    Its name contains a dot, so it cannot be the name of a pool in the blueprint.

    pool: A pool with a minimum.
    """
    kept = {"replicas": pool.min_nodes, "limits": {"nodes": str(pool.min_nodes)}}
    return _node_pool(pool, f"{pool.name}.kept", {"disruption": _disruption(pool), **kept})


def node_taints(pool: PoolProperties) -> list[Manifest]:
    """Return taints that keep pods without accelerators off accelerated nodes, and the user's taints.

    Parameters
    ----------
    pool
        The pool.
    """
    own = [dict(taint) for taint in pool.taints]
    resource = pool.instance_types[0].device_resource
    if resource is None:
        return own
    return [
        {
            "key": resource,
            "value": node_facts.ACCELERATOR_TAINT_VALUE,
            "effect": node_facts.ACCELERATOR_TAINT_EFFECT,
        },
        *own,
    ]


def _node_pool(pool: PoolProperties, name: str, specification: Manifest) -> Manifest:
    """Return a NodePool for nodes of the pool."""
    labels = _labels(pool)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            **specification,
            "template": {
                "metadata": {"labels": labels} if labels else {},
                "spec": {
                    # Expiry ends every node of an age at once, whatever the budgets say, and waits for no
                    # replacement (Karpenter 1.15, Disruption: "NodePool Disruption Budgets do not prevent
                    # Karpenter from terminating expired nodes"). Drift replaces nodes within the budgets.
                    "expireAfter": "Never",
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": pool.name,
                    },
                    "requirements": _requirements(pool),
                    "taints": node_taints(pool),
                    "terminationGracePeriod": _longest_drain(pool),
                },
            },
        },
    }


def _longest_drain(pool: PoolProperties) -> str:
    """Return the time after which Karpenter ends a node whose pods have not left.

    Up to then, PodDisruptionBudgets hold. Each pod is deleted whatever they say, early enough for its whole
    grace period, in which its streams end (``DeleteExpiringPods`` of Karpenter's
    ``pkg/controllers/node/termination/terminator/terminator.go``). Where AWS ends the instance at a time of
    its own, the period ends with it. Otherwise budgets would hold pods until the instance is gone, and their
    processes would never get SIGTERM: EC2 ends a spot instance two minutes after its notice, and those of a
    Capacity Block ten minutes after Karpenter begins to drain them
    (https://karpenter.sh/v1.14/tasks/odcrs/).
    """
    if "spot" in pool.capacity_types:
        return "2m"
    if pool.reserved and pool.reserved.kind == "capacity-block":
        return "10m"
    return "1h"


def _disruption(pool: PoolProperties) -> Manifest:
    """Remove empty nodes soon, replace used nodes one at a time, and never move pods to save money.

    Reserved capacity costs the same when it is unused, so its nodes stay and keep their images and caches.
    """
    return {
        "budgets": [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "1", "reasons": ["Drifted"]}],
        "consolidateAfter": "Never" if pool.reserved else "5m",
        "consolidationPolicy": "WhenEmpty",
    }


def _labels(pool: PoolProperties) -> dict[str, str]:
    """Return labels for the pods of the pool and for the device plug-ins."""
    labels = dict(pool.labels)
    if pool.labelled:
        labels[node_facts.POOL_LABEL] = pool.name
    if pool.efa:
        labels[node_facts.EFA_LABEL] = node_facts.EFA_LABEL_VALUE
    if not pool.system.has_device_plugin:
        labels[node_facts.DEVICE_PLUGIN_LABEL] = node_facts.DEVICE_PLUGIN_LABEL_VALUE
    return labels


def _network_interfaces(pool: PoolProperties) -> Manifest:
    """Return the EFA interfaces, if all instance types have the same ones.

    Without them Karpenter assigns an IP address to each EFA interface, and adds EFA only for pods that
    request it.
    """
    if not pool.efa or not efa_layouts_are_one(pool.instance_types):
        return {}
    return {
        "networkInterfaces": [
            {
                "networkCardIndex": interface.network_card,
                "deviceIndex": interface.device,
                "interfaceType": interface.kind,
            }
            for interface in efa_layout(pool.instance_types[0])
        ]
    }


def _limits(pool: PoolProperties) -> Manifest:
    """Return limits on nodes and accelerators. Karpenter counts accelerators before a node has joined."""
    devices = max(instance_type.device_count for instance_type in pool.instance_types)
    nodes = pool.max_nodes - pool.min_nodes
    limits: Manifest = {"nodes": str(nodes)}
    resource = pool.instance_types[0].device_resource
    if resource:
        limits[resource] = str(nodes * devices)
    return limits


def _requirements(pool: PoolProperties) -> list[Manifest]:
    """Return requirements on the instance type, the capacity type, the architecture and the zone."""
    requirements = {
        "node.kubernetes.io/instance-type": [instance_type.name for instance_type in pool.instance_types],
        "karpenter.sh/capacity-type": list(pool.capacity_types),
        "kubernetes.io/arch": sorted({instance_type.architecture for instance_type in pool.instance_types}),
        "kubernetes.io/os": ["linux"],
    }
    if pool.reserved:
        requirements["karpenter.k8s.aws/capacity-reservation-type"] = [pool.reserved.kind]
    if pool.availability_zone:
        requirements["topology.kubernetes.io/zone"] = [pool.availability_zone]
    return [{"key": key, "operator": "In", "values": values} for key, values in requirements.items()]


def _image_volume(pool: PoolProperties) -> Manifest:
    """Return the snapshot and the speed of the data volume, if large images are stored on it.

    Without accelerators images are small, and the speed that is part of a gp3 volume's price is enough.
    """
    is_large = bool(pool.instance_types[0].device_resource or pool.image_snapshot_id)
    if pool.uses_instance_store or not is_large:
        return {}
    throughput = gp3_mib_per_second(pool.instance_types)
    operations = max(FREE_GP3_OPERATIONS, throughput * OPERATIONS_PER_MIB_PER_SECOND)
    speed = {"throughput": throughput, "iops": operations}
    if not pool.image_snapshot_id:
        return speed
    return {
        **speed,
        "snapshotID": pool.image_snapshot_id,
        "volumeInitializationRate": INITIALIZATION_MIB_PER_SECOND,
    }


def _volume(device: str, size_gib: int, **fields: int | str) -> Manifest:
    """Return one encrypted gp3 volume."""
    volume = {"volumeSize": f"{size_gib}Gi", "volumeType": "gp3", "encrypted": True, **fields}
    return {"deviceName": device, "ebs": {**volume, "deleteOnTermination": True}}


class KarpenterPool(eks.KubernetesManifest):
    """A NodePool with its EC2NodeClass, and a second NodePool if the pool has a minimum.

    The second NodePool has its own manifest, because CDK does not delete an object that is only removed from
    a manifest (https://github.com/aws/aws-cdk/issues/22085).

    Parameters
    ----------
    cluster
        Cluster that runs Karpenter.
    pool
        The pool.
    nodes
        Properties that all nodes share.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        pool: PoolProperties,
        nodes: NodeProperties,
    ) -> None:
        super().__init__(
            scope, construct_id, cluster=cluster, manifest=[node_class(pool, nodes), node_pool(pool)]
        )
        if pool.min_nodes:
            kept = eks.KubernetesManifest(self, "Kept", cluster=cluster, manifest=[kept_node_pool(pool)])
            kept.node.add_dependency(self.node.find_child("Resource"))
