"""A log group with a retention period and a customer managed key."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

_DAYS = logs.RetentionDays
#: The L2 construct's member by number of days.
_RETENTION = {
    1: _DAYS.ONE_DAY,
    3: _DAYS.THREE_DAYS,
    5: _DAYS.FIVE_DAYS,
    7: _DAYS.ONE_WEEK,
    14: _DAYS.TWO_WEEKS,
    30: _DAYS.ONE_MONTH,
    60: _DAYS.TWO_MONTHS,
    90: _DAYS.THREE_MONTHS,
    120: _DAYS.FOUR_MONTHS,
    150: _DAYS.FIVE_MONTHS,
    180: _DAYS.SIX_MONTHS,
    365: _DAYS.ONE_YEAR,
    400: _DAYS.THIRTEEN_MONTHS,
    545: _DAYS.EIGHTEEN_MONTHS,
    731: _DAYS.TWO_YEARS,
    1096: _DAYS.THREE_YEARS,
    1827: _DAYS.FIVE_YEARS,
    2192: _DAYS.SIX_YEARS,
    2557: _DAYS.SEVEN_YEARS,
    2922: _DAYS.EIGHT_YEARS,
    3288: _DAYS.NINE_YEARS,
    3653: _DAYS.TEN_YEARS,
}


class KeptLogGroup(logs.LogGroup):
    """A log group that exists before its service writes to it, so that nothing is kept forever.

    It goes with its stack, as the other logs of the platform do.

    Parameters
    ----------
    name
        Name of the log group, a plain string. The service chooses it.
    retention_days
        Days for which events are kept; one of the catalogue's `RETENTION_DAYS`.
    encryption_key
        KMS key of the events. CloudWatch Logs may use it for this log group alone.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        retention_days: int,
        encryption_key: kms.IKey,
    ) -> None:
        stack = cdk.Stack.of(scope)
        super().__init__(
            scope,
            construct_id,
            log_group_name=name,
            encryption_key=encryption_key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
            retention=_RETENTION[retention_days],
        )
        # The statement has no reference, so the key's stack does not come to depend on this one.
        encryption_key.add_to_resource_policy(_use_of_key(stack, name))


def _use_of_key(stack: cdk.Stack, name: str) -> iam.PolicyStatement:
    """Let CloudWatch Logs use a key for one log group.

    Source: Amazon CloudWatch Logs User Guide, "Encrypt log data in CloudWatch Logs using AWS Key Management
    Service" (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html).
    """
    group = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{name}"
    return iam.PolicyStatement(
        actions=["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
        principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
        resources=["*"],
        conditions={"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": group}},
    )


def short_log(scope: Construct, construct_id: str) -> logs.LogGroup:
    """Add the log group of a build or a helper: it is kept for 90 days, and deleted with its stack."""
    return logs.LogGroup(
        scope,
        construct_id,
        removal_policy=cdk.RemovalPolicy.DESTROY,
        retention=logs.RetentionDays.THREE_MONTHS,
    )
