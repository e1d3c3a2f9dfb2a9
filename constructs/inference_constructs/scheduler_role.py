"""The role of schedules that call a function."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct


def scheduler_role(
    scope: Construct, construct_id: str, *, function: lambda_.IFunction, undelivered: sqs.IQueue
) -> iam.Role:
    """Add a role with which EventBridge Scheduler calls a function, and puts lost calls into a queue.

    Only schedules of this account's default group assume it, not those of other accounts:
    https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html

    Parameters
    ----------
    scope, construct_id
        Parent and construct ID.
    function
        The function.
    undelivered
        Queue of calls that failed.
    """
    stack = cdk.Stack.of(scope)
    group = stack.format_arn(service="scheduler", resource="schedule-group", resource_name="default")
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group}},
        ),
    )
    role.add_to_policy(
        iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
    )
    # `grant_send_messages` would also allow reading the queue's attributes.
    role.add_to_policy(iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[undelivered.queue_arn]))
    return role
