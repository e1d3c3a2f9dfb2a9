"""The nodes for models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

import inference_catalog as catalog
from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.serving.nodes.node_share import pool_quota
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Kueue, Pool, Purchase, Queueing
from inference_catalog import node_facts
from inference_catalog.catalogue import shipped
from inference_catalog.charts import Chart
from inference_catalog.operating_system import SystemName
from inference_catalog.releases import NodeImage
from inference_constructs.capacity import (
    EfaSecurityGroup,
    JobQueue,
    KarpenterPool,
    NodeProperties,
    PoolProperties,
    QueueProperties,
    node_taints,
)
from inference_constructs.eks import KubectlAccess
from inference_constructs.helm import HelmRelease
from inference_contracts.health_names import OVERFLOW_POOL
from stacks.eks.platform_stack import MODEL_NAMESPACE
from stacks.shared_parts import reserved_instances


class CapacityStack(cdk.Stack):
    """A Karpenter pool for each pool of the blueprint, one without accelerators for routers, and queues.

    access: The cluster.
    charts: Charts by name.
    pools, queueing: Sections of the blueprint.
    plan: The serving plan. The queues' quotas exclude the models' processes.
    shifted_queues: Pools whose quota the capacity shift raises and lowers.
    image: Image that nodes boot.
    held_images: Image by pool, for the pools that keep an earlier image.
    vpc: VPC of the nodes.
    subnet_ids: IDs of the private subnets. Tags could also match other subnets.
    security_group_id: The cluster's security group, which admits its members.
    instance_tags: Tags of instances and volumes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        access: KubectlAccess,
        charts: Mapping[str, Chart],
        pools: Sequence[Pool],
        queueing: Queueing | None,
        plan: ServingPlan,
        shifted_queues: Collection[str],
        image: NodeImage,
        held_images: Mapping[str, NodeImage],
        vpc: ec2.IVpc,
        node_role_name: str,
        subnet_ids: Sequence[str],
        security_group_id: str,
        instance_tags: Mapping[str, str],
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        cluster = access.import_cluster(self)
        efa_groups = (
            [EfaSecurityGroup(self, "Efa", vpc_id=vpc.vpc_id).attr_group_id]
            if any(pool.efa for pool in pools)
            else []
        )
        nodes = NodeProperties(
            role_name=node_role_name,
            subnet_ids=subnet_ids,
            security_group_ids=[security_group_id],
            efa_security_group_ids=efa_groups,
            tags=instance_tags,
        )
        KarpenterPool(self, "SystemPool", cluster=cluster, pool=_system_pool(image), nodes=nodes)
        properties = [
            _pool_properties(pool, held_images.get(pool.name, image), plan.node_systems[pool.name])
            for pool in pools
        ]
        for each in properties:
            KarpenterPool(self, f"Pool-{each.name}", cluster=cluster, pool=each, nodes=nodes)
        if any(pool.shared is not None for pool in pools):
            eks.KubernetesManifest(self, "PriorityClasses", cluster=cluster, manifest=priority_classes())
        if queueing and queueing.kueue:
            queues = _queues(queueing.kueue, pools, properties, plan, shifted_queues)
            self._add_queues(queues, cluster=cluster, chart=charts["kueue"], cohort=access.cluster_name)

    def _add_queues(
        self, queues: Sequence[QueueProperties], *, cluster: eks.ICluster, chart: Chart, cohort: str
    ) -> None:
        """Install Kueue and its queues. In one stack, CloudFormation deletes the queues before Kueue."""
        kueue = HelmRelease(
            self,
            "Kueue",
            cluster=cluster,
            chart=chart,
            values=chart_values("kueue", namespace=MODEL_NAMESPACE),
            wait=True,
            create_namespace=True,
        )
        for queue in queues:
            JobQueue(
                self,
                f"Queue-{queue.pool}",
                cluster=cluster,
                queue=queue,
                cohort=cohort,
                namespace=MODEL_NAMESPACE,
            ).node.add_dependency(kueue)


#: Values of the classes. Pods without a class have 0: jobs of Kueue come before workers of batch, and after
#: real time.
_PRIORITIES = {node_facts.REAL_TIME_PRIORITY_CLASS: 1000, node_facts.BATCH_PRIORITY_CLASS: -1000}


def priority_classes() -> list[dict[str, Any]]:
    """Return the classes of pods on pools that models share by the hour. Their values never change.

    All pods of real time have one class, so they never end each other: between models, the capacity shift
    decides (https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/). A pod of batch
    ends no other.
    """
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if value > 0 else "Never",
            "description": "Workers on pools that models share by the hour.",
        }
        for name, value in _PRIORITIES.items()
    ]


def _system_pool(image: NodeImage) -> PoolProperties:
    """Return the pool of routers that do not fit on the system nodes."""
    return PoolProperties(
        name=OVERFLOW_POOL,
        instance_types=[catalog.instance_type(name) for name in node_facts.OVERFLOW_INSTANCE_TYPES],
        system=shipped().operating_systems["bottlerocket"],
        image=image,
        capacity_types=["on-demand"],
        max_nodes=node_facts.OVERFLOW_MAXIMUM_NODES,
        disk_gib=80,
        labelled=False,
    )


def _pool_properties(pool: Pool, image: NodeImage, system: SystemName) -> PoolProperties:
    """Convert a pool of the blueprint."""
    return PoolProperties(
        name=pool.name,
        system=shipped().operating_systems[system],
        instance_types=pool.types,
        image=image,
        capacity_types=_capacity_types(pool.purchase),
        max_nodes=pool.nodes.max,
        min_nodes=pool.nodes.min,
        disk_gib=pool.disk.size_gib,
        image_snapshot_id=pool.image_snapshot_id,
        reserved=reserved_instances(pool.purchase),
        availability_zone=pool.availability_zone,
        efa=pool.efa,
        labels=pool.labels,
        # Karpenter accepts a taint without a value, but not a taint with an empty value.
        taints=[{name: word for name, word in taint.model_dump().items() if word} for taint in pool.taints],
    )


def _queues(
    kueue: Kueue,
    pools: Sequence[Pool],
    properties: Sequence[PoolProperties],
    plan: ServingPlan,
    shifted: Collection[str],
) -> list[QueueProperties]:
    """Return a queue per pool, with the capacity that models leave. Only pools of one kind lend quota."""
    quotas = {pool.name: pool_quota(pool, plan).resources for pool in pools}
    return [
        QueueProperties(
            pool=pool.name,
            taints=node_taints(nodes),
            quota=quotas[pool.name],
            lenders=[
                name
                for name, quota in quotas.items()
                if kueue.borrowing and name != pool.name and quota.keys() == quotas[pool.name].keys()
            ],
            shifted=pool.name in shifted,
        )
        for pool, nodes in zip(pools, properties, strict=True)
    ]


def _capacity_types(purchase: Purchase) -> list[str]:
    """Return Karpenter's capacity types for a purchase option."""
    if purchase.spot:
        return ["spot", "on-demand"] if purchase.spot.on_demand_fallback else ["spot"]
    return ["on-demand"] if purchase.on_demand else ["reserved"]
