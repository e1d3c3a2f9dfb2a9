"""Replicas of the front door as pods of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks

from inference_blueprints.render.eks.front_door_values import eks_places, front_door_values
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_catalog.charts import Chart
from inference_constructs.eks import KubectlAccess, PodIdentity
from inference_constructs.helm import HelmRelease
from stacks.door_compute import DoorCompute, DoorParts

#: Pods are ready only when their target is healthy, and none may have more rights than its container needs
#: (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
_LABELS = {
    "elbv2.k8s.aws/pod-readiness-gate-inject": "enabled",
    "pod-security.kubernetes.io/enforce": "restricted",
}


class DoorPods(DoorCompute):
    """One Helm release of pods, in a namespace of its own.

    plan: The plan of the models.
    access: The cluster.
    security_group_id: The cluster's security group, which its pods have. It admits the load balancer.
    charts: Charts by name.
    """

    def __init__(
        self,
        door: DoorPlan,
        plan: ServingPlan,
        *,
        access: KubectlAccess,
        security_group_id: str,
        charts: Mapping[str, Chart],
    ) -> None:
        super().__init__(door)
        self._plan = plan
        self._access = access
        self._security_group_id = security_group_id
        self._chart = charts["front-door"]

    def places(self) -> DoorPlaces:
        """Return where the replicas find what they need."""
        return eks_places(self._door)

    def admit(self, stack: cdk.Stack) -> ec2.ISecurityGroup:
        """Return the security group of all pods. The Cluster stack admits the load balancer to it."""
        return ec2.SecurityGroup.from_security_group_id(stack, "Pods", self._security_group_id, mutable=False)

    def add_replicas(self, stack: cdk.Stack, parts: DoorParts) -> None:
        """Add the namespace, the permissions and the release.

        The deployment waits until the pods take requests, because rules of the models lead to them next.
        """
        cluster = self._access.import_cluster(stack)
        chart = self._chart
        release = chart.release or chart.name
        namespace = eks.KubernetesManifest(
            stack,
            "Namespace",
            cluster=cluster,
            manifest=[
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": chart.namespace, "labels": dict(_LABELS)},
                }
            ],
        )
        identity = PodIdentity(
            stack,
            "Identity",
            cluster_name=self._access.cluster_name,
            namespace=chart.namespace,
            service_accounts=[release],
        )
        parts.grant(identity)
        binding = parts.targets.bind(cluster, namespace=chart.namespace, service=release)
        binding.node.add_dependency(namespace)
        HelmRelease(
            stack,
            "Release",
            cluster=cluster,
            chart=chart,
            values=front_door_values(
                self._plan, self._door, image=parts.image.uri, references=parts.references
            ),
            wait=True,
        ).node.add_dependency(binding, identity, parts.image.build, *parts.earlier)
