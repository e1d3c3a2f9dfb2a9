"""AWS permissions of Karpenter and of its nodes."""

from __future__ import annotations

from itertools import chain

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_constructs.capacity.karpenter_policies import KarpenterScope, karpenter_policies
from inference_constructs.eks.node_role import NodeRole
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.findings import acknowledge, acknowledge_wildcards
from inference_constructs.policy_statements import policy_document

#: EventBridge source and detail type by construct ID, for Karpenter's interruption controller
#: (https://karpenter.sh/v1.14/concepts/disruption/#interruption).
_EVENTS = {
    "ScheduledChange": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "InstanceStateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservationInterruption": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
}
_RETENTION_SECONDS = 300


class InterruptionQueue(sqs.Queue):
    """A queue of warnings about nodes. Karpenter reads it and drains the nodes in time."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.seconds(_RETENTION_SECONDS),
        )
        rules = [self._rule(name, source, kind) for name, (source, kind) in _EVENTS.items()]
        self.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sqs:SendMessage"],
                conditions={"ArnEquals": {"aws:SourceArn": [rule.attr_arn for rule in rules]}},
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                resources=[self.queue_arn],
            )
        )
        acknowledge(
            self,
            {"SQS3": "A warning is useless after five minutes, so a dead-letter queue has no purpose."},
        )

    def _rule(self, name: str, source: str, detail_type: str) -> events.CfnRule:
        """Send one kind of event to the queue."""
        return events.CfnRule(
            self,
            name,
            event_pattern={"source": [source], "detail-type": [detail_type]},
            targets=[events.CfnRule.TargetProperty(arn=self.queue_arn, id="Queue")],
        )


NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"


class KarpenterIdentity(Construct):
    """Karpenter's role and interruption queue, and the role and cluster access of its nodes.

    Parameters
    ----------
    cluster_name
        A plain string without CDK tokens, because it becomes part of IAM condition keys.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster_name: str) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.node_role = NodeRole(self, "NodeRole")
        self.queue = InterruptionQueue(self, "Queue")
        policy_scope = KarpenterScope(
            partition=stack.partition,
            region=stack.region,
            account=stack.account,
            cluster_name=cluster_name,
            node_role_arn=self.node_role.attr_arn,
            queue_arn=self.queue.queue_arn,
        )
        documents = karpenter_policies(policy_scope)
        policies = [
            iam.CfnManagedPolicy(self, f"{name}Policy", policy_document=policy_document(statements))
            for name, statements in documents.items()
        ]
        self.controller = PodIdentity(
            self,
            "Controller",
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_accounts=[SERVICE_ACCOUNT],
            managed_policy_arns=[policy.ref for policy in policies],
        )
        # Without this access entry nodes start but never join the cluster.
        eks.CfnAccessEntry(
            self, "Nodes", cluster_name=cluster_name, principal_arn=self.node_role.attr_arn, type="EC2_LINUX"
        )
        acknowledge_wildcards(
            self,
            chain.from_iterable(documents.values()),
            "Nodes are not known at deployment. Write permissions are limited to the cluster's tags, read "
            "permissions to the region, as in Karpenter's own template.",
        )
