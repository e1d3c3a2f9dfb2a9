"""The route from the models' load balancer to the pods of one model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from inference_constructs.network.model_load_balancer import Gateway
from inference_contracts.request_filter import API_PATHS

#: Limits of Application Load Balancers
#: (https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/).
LAST_PRIORITY = 50_000
_LARGEST_WEIGHT = 999
_LONGEST_DEREGISTRATION_SECONDS = 3600


@dataclass(frozen=True)
class ModelTarget:
    """The entry point of one deployment."""

    name: str
    """Name of the deployment."""
    port: int
    """Port of the entry point, which also answers `health_path`. Another one is another target group."""
    health_path: str
    """Path that answers 200 when the entry point can accept requests."""
    weight: int
    """Share of the requests, relative to the weights of the other deployments."""
    drain_seconds: int
    """Time for streams to end before an entry point stops, in seconds."""


@dataclass(frozen=True)
class FurtherAddress:
    """A further host name of a model, behind which some of its deployments answer."""

    host_name: str
    """The host name."""
    priority: int
    """Priority of its rule, unique on the listener."""
    deployments: tuple[str, ...]
    """Names of the deployments, at least one."""


class ModelTargets(Construct):
    """One target group per deployment, and the listener's rules for the model's host names.

    Parameters
    ----------
    host_name
        Host name of the model.
    gateway
        The models' load balancer.
    priority
        Priority of the rule, unique on the listener. The order does not matter, because host names are
        distinct.
    targets
        The deployments' entry points.
    own
        Names of the deployments behind the model's host name. Without it, all.
    further
        Further host names, for requests that only some deployments answer.
    door
        ARN of the target group of the front door, if host names lead to it. The target groups of the
        deployments stay in the rules, with the weight 0: they get no requests, and their targets are still
        checked, on which ECS and the readiness of pods depend. Without it, host names lead to the
        deployments.

    Attributes
    ----------
    groups
        Target group of each deployment, by its name.
    rule
        The listener's rule of the model's host name.
    rules
        All rules. A target group may get targets only after a rule with it exists.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        host_name: str,
        gateway: Gateway,
        priority: int,
        targets: Sequence[ModelTarget],
        own: Sequence[str] = (),
        further: Sequence[FurtherAddress] = (),
        door: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._door = door
        self.groups = {target.name: self._target_group(target, gateway.vpc_id) for target in targets}
        shares = {target.name: target.weight for target in targets}
        addresses = [FurtherAddress(host_name, priority, tuple(own or shares)), *further]
        self.rules = [
            self._rule(gateway.listener_arn, each, shares, "" if index == 0 else each.host_name.split(".")[0])
            for index, each in enumerate(addresses)
        ]
        self.rule = self.rules[0]

    def _target_group(self, target: ModelTarget, vpc_id: str) -> elbv2.CfnTargetGroup:
        """Add the target group of a deployment. Its targets get time to end their streams."""
        drain = min(target.drain_seconds, _LONGEST_DEREGISTRATION_SECONDS)
        attribute = elbv2.CfnTargetGroup.TargetGroupAttributeProperty
        return elbv2.CfnTargetGroup(
            self,
            f"Targets-{target.name}",
            vpc_id=vpc_id,
            target_type="ip",
            port=target.port,
            protocol="HTTP",
            health_check_path=target.health_path,
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
        address: FurtherAddress,
        shares: Mapping[str, int],
        label: str,
    ) -> elbv2.CfnListenerRule:
        """Add the rule that distributes a host's requests over its target groups by weight."""
        rule = elbv2.CfnListenerRule
        weights = listener_weights({name: shares[name] for name in address.deployments})
        targets = [
            rule.TargetGroupTupleProperty(
                target_group_arn=self.groups[name].ref, weight=0 if self._door else weight
            )
            for name, weight in weights.items()
        ]
        if self._door:
            targets.insert(0, rule.TargetGroupTupleProperty(target_group_arn=self._door, weight=1))
        return rule(
            self,
            f"Rule-{label}" if label else "Rule",
            listener_arn=listener_arn,
            priority=address.priority,
            conditions=_conditions(address.host_name),
            actions=[
                rule.ActionProperty(
                    type="forward", forward_config=rule.ForwardConfigProperty(target_groups=targets)
                )
            ],
        )


def _conditions(host_name: str) -> list[elbv2.CfnListenerRule.RuleConditionProperty]:
    """Return what a request must match: the host name, and a path of the API.

    Entry points have further paths on the same port, for their operator: four requests to ``/busy_threshold``
    of Dynamo's frontend stop a model. Other paths have the answer of the listener.
    """
    rule = elbv2.CfnListenerRule
    host = rule.RuleConditionProperty(
        field="host-header", host_header_config=rule.HostHeaderConfigProperty(values=[host_name])
    )
    path = rule.RuleConditionProperty(
        field="path-pattern", path_pattern_config=rule.PathPatternConfigProperty(values=list(API_PATHS))
    )
    return [host, path]


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
        priority = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % LAST_PRIORITY
        while priority in taken:
            priority = (priority + 1) % LAST_PRIORITY
        taken[priority] = name
    return {name: priority + 1 for priority, name in taken.items()}


def listener_weights(shares: Mapping[str, int]) -> dict[str, int]:
    """Scale shares to the weights that a listener allows.

    shares: Positive shares by name, of any size.
    Returns: Weights in the same proportions, 1 to 999.
    """
    scale = min(1.0, _LARGEST_WEIGHT / max(shares.values()))
    return {name: max(1, round(share * scale)) for name, share in shares.items()}


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
    host_name, gateway, priority, own, further, door
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
        own: Sequence[str] = (),
        further: Sequence[FurtherAddress] = (),
        door: str | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            host_name=host_name,
            gateway=gateway,
            priority=priority,
            targets=backends,
            own=own,
            further=further,
            door=door,
        )
        # One manifest per object: CDK does not delete an object that is only removed from a manifest
        # (https://github.com/aws/aws-cdk/issues/22085).
        for backend in backends:
            eks.KubernetesManifest(
                self,
                f"Binding-{backend.name}",
                cluster=cluster,
                manifest=[_binding(backend, namespace, self.groups[backend.name].ref)],
            ).node.add_dependency(*self.rules)


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
