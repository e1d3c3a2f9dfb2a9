"""Warnings about nodes that AWS is going to interrupt."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_constructs.findings import acknowledge

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
