"""Who is told of alarms."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


class AlarmTopic(Construct):
    """An encrypted topic with e-mail subscriptions. CloudWatch may publish to it.

    Parameters
    ----------
    emails
        E-mail addresses. AWS asks each one to confirm.
    """

    def __init__(self, scope: Construct, construct_id: str, *, emails: Sequence[str]) -> None:
        super().__init__(scope, construct_id)
        # The key that AWS manages for SNS does not let CloudWatch publish:
        # https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
        key = kms.Key(self, "Key", enable_key_rotation=True, removal_policy=cdk.RemovalPolicy.DESTROY)
        cloudwatch_service = iam.ServicePrincipal("cloudwatch.amazonaws.com")
        key.grant(cloudwatch_service, "kms:Decrypt", "kms:GenerateDataKey*")
        alarm_topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        # Alarms of this account and region alone:
        # https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger
        stack = cdk.Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name="*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        alarm_topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                conditions={
                    "ArnLike": {"aws:SourceArn": alarms},
                    "StringEquals": {"aws:SourceAccount": stack.account},
                },
                principals=[cloudwatch_service],
                resources=[alarm_topic.topic_arn],
            )
        )
        for email in emails:
            alarm_topic.add_subscription(subscriptions.EmailSubscription(email))
        self._alarm_topic = alarm_topic

    @property
    def alarm_topic(self) -> sns.ITopic:
        """The topic."""
        return self._alarm_topic


def tell(alarm: cloudwatch.AlarmBase, alarm_topic: sns.ITopic | None) -> None:
    """Have a topic told when an alarm is raised and when it ends.

    alarm_topic: The topic. None if nobody is told.
    """
    if alarm_topic is not None:
        action = actions.SnsAction(alarm_topic)
        alarm.add_alarm_action(action)
        alarm.add_ok_action(action)
