"""The route from the models' load balancer to the pods of one model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from inference_constructs.network.gateway import Gateway

#: Limits of Application Load Balancers
#: (https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/).
_LAST_PRIORITY = 50_000
_LARGEST_WEIGHT = 999
_LONGEST_DEREGISTRATION_SECONDS = 3600


@dataclass(frozen=True)
class Backend:
    """The entry point of one deployment.

    Parameters
    ----------
    name
        Name of the deployment.
    release
        Name of its Helm release, unique in the namespace.
    service
        Kubernetes Service of its entry point.
    port
        Port of the Service and its pods.
    health_path
        Path that answers 200 when the pod can accept requests.
    weight
        Share of the requests, relative to the weights of the other deployments.
    drain_seconds
        Time for streams to end before a pod stops, in seconds.
    """

    name: str
    release: str
    service: str
    port: int
    health_path: str
    weight: int
    drain_seconds: int


class ModelRoute(Construct):
    """One target group per deployment, and the listener's rule for the model's host name.

    Parameters
    ----------
    cluster
        Cluster of the TargetGroupBindings, which attach pods to the target groups.
    namespace
        Kubernetes namespace of the Services.
    host_name
        Host name of the model.
    gateway
        The models' load balancer.
    priority
        Priority of the rule, unique on the listener. The order does not matter, because host names are
        distinct.
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
        super().__init__(scope, construct_id)
        groups = {backend.name: self._target_group(backend, gateway.vpc_id) for backend in backends}
        weights = listener_weights({backend.name: backend.weight for backend in backends})
        rule = self._rule(gateway.listener_arn, host_name, priority, groups, weights)
        # One manifest per object: CDK does not delete an object that is only removed from a manifest
        # (https://github.com/aws/aws-cdk/issues/22085).
        for backend in backends:
            eks.KubernetesManifest(
                self,
                f"Binding-{backend.name}",
                cluster=cluster,
                manifest=[_binding(backend, namespace, groups[backend.name].ref)],
            ).node.add_dependency(rule)

    def _target_group(self, backend: Backend, vpc_id: str) -> elbv2.CfnTargetGroup:
        """Add the target group of a deployment. Its pods get time to end their streams."""
        drain = min(backend.drain_seconds, _LONGEST_DEREGISTRATION_SECONDS)
        attribute = elbv2.CfnTargetGroup.TargetGroupAttributeProperty
        return elbv2.CfnTargetGroup(
            self,
            f"Targets-{backend.name}",
            vpc_id=vpc_id,
            target_type="ip",
            port=backend.port,
            protocol="HTTP",
            health_check_path=backend.health_path,
            health_check_interval_seconds=10,
            health_check_timeout_seconds=5,
            healthy_threshold_count=2,
            unhealthy_threshold_count=2,
            target_group_attributes=[
                attribute(key="deregistration_delay.timeout_seconds", value=str(drain)),
                attribute(key="load_balancing.algorithm.type", value="least_outstanding_requests"),
            ],
        )

    def _rule(
        self,
        listener_arn: str,
        host_name: str,
        priority: int,
        groups: Mapping[str, elbv2.CfnTargetGroup],
        weights: Mapping[str, int],
    ) -> elbv2.CfnListenerRule:
        """Add the rule that distributes the host's requests over the target groups by weight."""
        rule = elbv2.CfnListenerRule
        targets = [
            rule.TargetGroupTupleProperty(target_group_arn=group.ref, weight=weights[name])
            for name, group in groups.items()
        ]
        return rule(
            self,
            "Rule",
            listener_arn=listener_arn,
            priority=priority,
            conditions=[
                rule.RuleConditionProperty(
                    field="host-header",
                    host_header_config=rule.HostHeaderConfigProperty(values=[host_name]),
                )
            ],
            actions=[
                rule.ActionProperty(
                    type="forward", forward_config=rule.ForwardConfigProperty(target_groups=targets)
                )
            ],
        )


def listener_priorities(names: Sequence[str]) -> dict[str, int]:
    """Return a listener priority for each name. It rarely depends on the other names.

    Parameters
    ----------
    names
        Names of all models on the listener.

    Returns
    -------
    dict
        Distinct priorities, 1 to 50,000, from a hash of the name. If two names have the same hash, the later
        one in alphabetical order gets the next free priority.
    """
    taken: dict[int, str] = {}
    for name in sorted(names):
        priority = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % _LAST_PRIORITY
        while priority in taken:
            priority = (priority + 1) % _LAST_PRIORITY
        taken[priority] = name
    return {name: priority + 1 for priority, name in taken.items()}


def listener_weights(shares: Mapping[str, int]) -> dict[str, int]:
    """Scale shares to the weights that a listener allows.

    Parameters
    ----------
    shares
        Positive shares by name, of any size.

    Returns
    -------
    dict
        Weights in the same proportions, 1 to 999.
    """
    scale = min(1.0, _LARGEST_WEIGHT / max(shares.values()))
    return {name: max(1, round(share * scale)) for name, share in shares.items()}


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
