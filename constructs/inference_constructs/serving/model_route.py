"""The route from the models' load balancer to the pods of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_constructs.network.gateway import Gateway
from inference_constructs.serving.model_targets import ModelTarget, ModelTargets


@dataclass(frozen=True)
class Backend(ModelTarget):
    """The entry point of one deployment on Kubernetes."""

    release: str
    """Name of its Helm release, unique in the namespace."""
    service: str
    """Kubernetes Service of its entry point, with the same port as its pods."""


class ModelRoute(ModelTargets):
    """The targets of a model at the load balancer, with the pods attached to them.

    Parameters
    ----------
    cluster
        Cluster of the TargetGroupBindings, which attach pods to the target groups.
    namespace
        Kubernetes namespace of the Services.
    host_name, gateway, priority
        See `ModelTargets`.
    backends
        The deployments' entry points.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        namespace: str,
        host_name: str,
        gateway: Gateway,
        priority: int,
        backends: Sequence[Backend],
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            host_name=host_name,
            gateway=gateway,
            priority=priority,
            targets=backends,
        )
        # One manifest per object: CDK does not delete an object that is only removed from a manifest
        # (https://github.com/aws/aws-cdk/issues/22085).
        for backend in backends:
            eks.KubernetesManifest(
                self,
                f"Binding-{backend.name}",
                cluster=cluster,
                manifest=[_binding(backend, namespace, self.groups[backend.name].ref)],
            ).node.add_dependency(self.rule)


def _binding(backend: Backend, namespace: str, target_group_arn: str) -> dict[str, Any]:
    """Attach the pods of a Service to a target group. CloudFormation manages the security groups.

    The name of the binding does not depend on the Service's name. kubectl does not prune custom resources, so
    a renamed binding would leave the old one behind, and the controller refuses two bindings of one target
    group.
    """
    return {
        "apiVersion": "elbv2.k8s.aws/v1beta1",
        "kind": "TargetGroupBinding",
        "metadata": {"name": backend.release, "namespace": namespace},
        "spec": {
            "serviceRef": {"name": backend.service, "port": backend.port},
            "targetGroupARN": target_group_arn,
            "targetType": "ip",
        },
    }
