"""What controllers may do in a cluster on Amazon ECS.

Resources and conditions are those of the Service Authorization Reference, "Actions, resources, and condition
keys for Amazon Elastic Container Service", "… for Amazon EC2 Auto Scaling" and "… for AWS Application Auto
Scaling". Hosts, tasks and instances of a group get their identifiers when they start, so a policy names their
cluster, or the tag of their group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_catalog.tags import PLATFORM_TAG
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.operations.controlled_cluster import ControlledCluster
from inference_constructs.policy_statements import Statement
from inference_contracts import operations_names
from inference_contracts.shift_names import ShiftConfiguration

_HTTPS: Final = 443


class EcsControlledCluster(ControlledCluster):
    """A cluster whose controllers call AWS's services and nothing else. Its name is that of the platform.

    Parameters
    ----------
    name
        Its name, a plain string.
    """

    @property
    def environment(self) -> Mapping[str, str]:
        """Name of the cluster."""
        return {operations_names.ECS_CLUSTER: self.name}

    def connect(self, scope: Construct, group: ec2.SecurityGroup) -> None:  # noqa: ARG002 - no rule but the group's
        """Let controllers reach AWS."""
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS), "AWS")

    def grant_health(self, scope: Construct, role: iam.Role, *, replaces: bool) -> None:
        """Let GPU health read hosts and tasks, and if it replaces also drain and terminate hosts."""
        for statement, why in (*self._reads(scope), *(self._acts(scope) if replaces else ())):
            role.add_to_policy(statement)
            acknowledge_wildcards(role, [statement.to_statement_json()], why)

    @property
    def instance_condition(self) -> Mapping[str, Mapping[str, str]]:
        """The tag of the platform, which its Auto Scaling groups give to their instances."""
        return {"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": self.name}}

    def grant_shift(self, scope: Construct, role: iam.Role, shift: ShiftConfiguration) -> None:
        """Let the capacity shift read services, and if it shifts also set their numbers of tasks."""
        stack = cdk.Stack.of(scope)
        arns = [
            stack.format_arn(service="ecs", resource="service", resource_name=f"{self.name}/{each.name}")
            for each in shift.workers
        ]
        reads = _shift_reads(stack.region, arns)
        hosts = self._reads_of_shared_pools(scope) if shift.shared_pools else []
        changes = _shift_changes(stack, self.name, arns) if shift.action == "shift" else []
        for statement in (*reads, *hosts, *changes):
            role.add_to_policy(iam.PolicyStatement.from_json(dict(statement)))
        acknowledge_wildcards(role, reads, "Lists of scalable targets know no resources.")
        acknowledge_wildcards(role, hosts, "Hosts and tasks of the cluster get their names when they run.")
        acknowledge_wildcards(
            role,
            changes,
            "Application Auto Scaling chooses the ARNs of scalable targets, and a tag bounds them. It checks "
            "permissions on alarms without naming one.",
        )

    def _reads_of_shared_pools(self, scope: Construct) -> list[Statement]:
        """Return what a run reads of the hosts of shared pools, and of the tasks on them."""
        cluster = self._cluster_arn(scope)
        return [
            {
                "Sid": "ListHosts",
                "Effect": "Allow",
                "Action": "ecs:ListContainerInstances",
                "Resource": cluster,
            },
            {
                "Sid": "ListTasks",
                "Effect": "Allow",
                "Action": "ecs:ListTasks",
                "Resource": "*",
                "Condition": {"ArnEquals": {"ecs:cluster": cluster}},
            },
            {
                "Sid": "ReadHostsAndTasks",
                "Effect": "Allow",
                "Action": ["ecs:DescribeContainerInstances", "ecs:DescribeTasks"],
                "Resource": [self._arn(scope, "container-instance"), self._arn(scope, "task")],
            },
        ]

    def _reads(self, scope: Construct) -> Iterator[tuple[iam.PolicyStatement, str]]:
        cluster = self._cluster_arn(scope)
        yield (
            iam.PolicyStatement(actions=["ecs:ListContainerInstances"], resources=[cluster]),
            "It names the cluster.",
        )
        yield (
            iam.PolicyStatement(
                actions=["ecs:ListServices", "ecs:ListTasks"],
                conditions={"ArnEquals": {"ecs:cluster": cluster}},
                resources=["*"],
            ),
            "Lists have no resource that names a cluster, and the condition does.",
        )
        yield (
            iam.PolicyStatement(
                actions=["ecs:DescribeContainerInstances", "ecs:DescribeServices", "ecs:DescribeTasks"],
                resources=[self._arn(scope, kind) for kind in ("container-instance", "service", "task")],
            ),
            "Hosts, services and tasks of the cluster get their names when they run.",
        )
        yield (
            iam.PolicyStatement(
                actions=[
                    "autoscaling:DescribeAutoScalingGroups",
                    "autoscaling:DescribeAutoScalingInstances",
                    "ec2:DescribeInstanceTopology",
                    "ec2:DescribeInstances",
                ],
                resources=["*"],
            ),
            "These actions have no resource.",
        )

    def _acts(self, scope: Construct) -> Iterator[tuple[iam.PolicyStatement, str]]:
        yield (
            iam.PolicyStatement(
                actions=["ecs:DeleteAttributes", "ecs:PutAttributes", "ecs:UpdateContainerInstancesState"],
                conditions={"ArnEquals": {"ecs:cluster": self._cluster_arn(scope)}},
                resources=[self._arn(scope, "container-instance")],
            ),
            "Hosts of the cluster get their names when they join.",
        )
        groups = cdk.Stack.of(scope).format_arn(
            service="autoscaling",
            resource="autoScalingGroup",
            resource_name="*:autoScalingGroupName/*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        yield (
            iam.PolicyStatement(
                actions=["autoscaling:TerminateInstanceInAutoScalingGroup"],
                conditions={"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": self.name}},
                resources=[groups],
            ),
            "An ARN of a group holds a random identifier. The condition names the groups of the platform.",
        )

    def _cluster_arn(self, scope: Construct) -> str:
        stack = cdk.Stack.of(scope)
        return stack.format_arn(service="ecs", resource="cluster", resource_name=self.name)

    def _arn(self, scope: Construct, kind: str) -> str:
        return cdk.Stack.of(scope).format_arn(service="ecs", resource=kind, resource_name=f"{self.name}/*")


def _shift_reads(region: str, services: Sequence[str]) -> list[Statement]:
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


def _shift_changes(stack: cdk.Stack, platform: str, services: Sequence[str]) -> list[Statement]:
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
