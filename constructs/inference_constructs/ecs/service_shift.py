"""The capacity shift on ECS: a function that sets the smallest number of tasks of services each minute."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_catalog.tags import PLATFORM_TAG
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.operations.controller_place import ControllerPlace
from inference_constructs.operations.shift_function import ShiftFunction
from inference_constructs.policy_statements import Statement


class ServiceShift(ShiftFunction):
    """The function, with narrow access to services and to their scalable targets.

    Parameters
    ----------
    place, code, layer_arns, batch, shifts
        As for every `ShiftFunction`.
    services
        Names of the services whose smallest number of tasks it sets.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        code: lambda_.Code,
        layer_arns: Sequence[str],
        services: Sequence[str],
        batch: BatchStore,
        shifts: bool,
    ) -> None:
        super().__init__(
            scope, construct_id, place=place, code=code, layer_arns=layer_arns, batch=batch, shifts=shifts
        )
        stack = cdk.Stack.of(self)
        arns = [
            stack.format_arn(service="ecs", resource="service", resource_name=f"{place.cluster.name}/{name}")
            for name in services
        ]
        reads = _reads(stack.region, arns)
        changes = _changes(stack, place.platform, arns) if shifts else []
        for statement in (*reads, *changes):
            self.role.add_to_policy(iam.PolicyStatement.from_json(dict(statement)))
        acknowledge_wildcards(self.role, reads, "Lists of scalable targets know no resources.")
        acknowledge_wildcards(
            self.role,
            changes,
            "Application Auto Scaling chooses the ARNs of scalable targets, and a tag bounds them. It checks "
            "permissions on alarms without naming one.",
        )


def _reads(region: str, services: Sequence[str]) -> list[Statement]:
    """Return what a run reads.

    Service Authorization Reference, "Actions, resources, and condition keys for AWS Application Auto
    Scaling": ``DescribeScalableTargets`` has no resource type.
    """
    return [
        {
            "Sid": "ReadServices",
            "Effect": "Allow",
            "Action": "ecs:DescribeServices",
            "Resource": list(services),
        },
        {
            "Sid": "ReadFloors",
            "Effect": "Allow",
            "Action": "application-autoscaling:DescribeScalableTargets",
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": region}},
        },
    ]


def _changes(stack: cdk.Stack, platform: str, services: Sequence[str]) -> list[Statement]:
    """Return what a run changes, and what Application Auto Scaling checks before it does so.

    Application Auto Scaling chooses the ARNs of targets, and CloudFormation does not return them. So the tag
    of the platform, which a target that does not exist yet lacks, bounds the call.

    ``RegisterScalableTarget`` fails if its caller may not update the service, or may not put, describe and
    delete alarms. It finds out by calls without the name of an alarm
    (https://docs.aws.amazon.com/autoscaling/application/userguide/security_iam_permission_validation.html).
    So the function may make exactly these calls: each alarm whose name has two characters or more is denied,
    and this leaves out ``*``, as which a call without a name may be checked.
    """
    alarms = ["cloudwatch:DeleteAlarms", "cloudwatch:PutMetricAlarm"]
    every = stack.format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name="*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    return [
        {
            "Sid": "SetFloors",
            "Effect": "Allow",
            "Action": "application-autoscaling:RegisterScalableTarget",
            "Resource": stack.format_arn(
                service="application-autoscaling", resource="scalable-target", resource_name="*"
            ),
            "Condition": {"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": platform}},
        },
        {
            "Sid": "CheckedForServices",
            "Effect": "Allow",
            "Action": "ecs:UpdateService",
            "Resource": list(services),
        },
        {
            "Sid": "CheckedForAlarms",
            "Effect": "Allow",
            "Action": alarms,
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": stack.region}},
        },
        # A list of alarms is checked against all alarms of the region.
        {
            "Sid": "CheckedForListOfAlarms",
            "Effect": "Allow",
            "Action": "cloudwatch:DescribeAlarms",
            "Resource": every,
        },
        {
            "Sid": "NoAlarmWithAName",
            "Effect": "Deny",
            "Action": alarms,
            "Resource": every.replace(":alarm:*", ":alarm:??*"),
        },
    ]
