"""The route from the models' load balancer to the replicas of the front door."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from inference_constructs.network.model_load_balancer import Gateway
from inference_contracts.door_headers import READY_PATH
from inference_contracts.door_names import DOOR_PORT

#: The longest deregistration of a target, so that no stream of up to an hour is cut.
DRAIN_SECONDS: Final = 3600


class DoorTargets(Construct):
    """The target group of the front door, and the listener's rule for its host name.

    The load balancer connects with TLS. It does not verify the certificate of a target, and security groups
    decide whom it can reach ("Application Load Balancers, Target groups, Routing configuration",
    https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-target-groups.html).
    Every path leads to the door, which answers those that it does not know.

    Parameters
    ----------
    host_name
        Host name of the front door.
    gateway
        The models' load balancer, with HTTPS.
    priority
        Priority of the rule, unique on the listener.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, host_name: str, gateway: Gateway, priority: int
    ) -> None:
        super().__init__(scope, construct_id)
        attribute = elbv2.CfnTargetGroup.TargetGroupAttributeProperty
        group = elbv2.CfnTargetGroup(
            self,
            "Targets",
            vpc_id=gateway.vpc_id,
            target_type="ip",
            port=DOOR_PORT,
            protocol="HTTPS",
            health_check_path=READY_PATH,
            health_check_protocol="HTTPS",
            health_check_interval_seconds=10,
            health_check_timeout_seconds=5,
            healthy_threshold_count=2,
            unhealthy_threshold_count=2,
            target_group_attributes=[
                attribute(key="deregistration_delay.timeout_seconds", value=str(DRAIN_SECONDS)),
                attribute(key="load_balancing.algorithm.type", value="least_outstanding_requests"),
            ],
        )
        rule = elbv2.CfnListenerRule
        #: ARN of the target group.
        self.target_group_arn = group.ref
        #: The rule. A target group may get targets only after a rule with it exists.
        self.rule = rule(
            self,
            "Rule",
            listener_arn=gateway.listener_arn,
            priority=priority,
            conditions=[
                rule.RuleConditionProperty(
                    field="host-header", host_header_config=rule.HostHeaderConfigProperty(values=[host_name])
                )
            ],
            actions=[
                rule.ActionProperty(
                    type="forward",
                    forward_config=rule.ForwardConfigProperty(
                        target_groups=[rule.TargetGroupTupleProperty(target_group_arn=group.ref, weight=1)]
                    ),
                )
            ],
        )

    def bind(self, cluster: eks.ICluster, *, namespace: str, service: str) -> eks.KubernetesManifest:
        """Attach the pods of a Service to the target group.

        Parameters
        ----------
        cluster
            Cluster of the pods.
        namespace, service
            Namespace and name of the Service.
        """
        binding: dict[str, Any] = {
            "apiVersion": "elbv2.k8s.aws/v1beta1",
            "kind": "TargetGroupBinding",
            "metadata": {"name": service, "namespace": namespace},
            "spec": {
                "serviceRef": {"name": service, "port": DOOR_PORT},
                "targetGroupARN": self.target_group_arn,
                "targetType": "ip",
            },
        }
        manifest = eks.KubernetesManifest(self, "Binding", cluster=cluster, manifest=[binding])
        manifest.node.add_dependency(self.rule)
        return manifest
