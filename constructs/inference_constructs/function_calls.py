"""Who calls functions: whether a call is repeated, what keeps lost events, and the role of schedules."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_constructs.findings import acknowledge


def not_repeated() -> dict[str, Any]:
    """Return a function's settings if the next call does the same anyway: controllers and the canary.

    A late call would act on an old time. A minute is the shortest age that Lambda takes
    (https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html).
    """
    return {"max_event_age": cdk.Duration.minutes(1), "retry_attempts": 0}


def repeated() -> dict[str, Any]:
    """Return a function's settings if nobody asks for the call again: Lambda's defaults."""
    return {"max_event_age": cdk.Duration.hours(6), "retry_attempts": 2}


def undelivered_events(scope: Construct, construct_id: str) -> sqs.Queue:
    """Add the dead-letter queue of functions, rules and schedules, so that no event is lost unseen."""
    queue = sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=cdk.Duration.days(14),
    )
    acknowledge(queue, {"SQS3": "It is the dead-letter queue of functions, rules and schedules."})
    return queue


def scheduler_role(
    scope: Construct, construct_id: str, *, function: lambda_.IFunction, undelivered: sqs.IQueue
) -> iam.Role:
    """Add a role with which EventBridge Scheduler calls a function, and puts lost calls into a queue.

    Only schedules of this account's default group assume it, not those of other accounts:
    https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html

    undelivered: Queue of calls that failed.
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
