"""What GPU health may do on ECS: read hosts and tasks, and with `replace` drain and terminate hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_catalog.tags import PLATFORM_TAG
from inference_constructs.findings import acknowledge_wildcards


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccess:
    """The access of GPU health to a cluster on ECS: a `HealthAccess`.

    Resources and conditions are those of the Service Authorization Reference, "Actions, resources, and
    condition keys for Amazon Elastic Container Service" and "… for Amazon EC2 Auto Scaling". Hosts, tasks and
    instances of a group get their identifiers when they start, so a policy names their cluster, or the tag
    of their group.

    Parameters
    ----------
    cluster_name
        Name of the cluster and of the platform, a plain string.
    replaces
        Whether the functions may replace hosts. Otherwise they can only read.
    """

    cluster_name: str
    replaces: bool

    def give(self, scope: Construct, role: iam.Role) -> None:
        """Add the statements to the role."""
        for statement, why in (*self._reads(scope), *(self._acts(scope) if self.replaces else ())):
            role.add_to_policy(statement)
            acknowledge_wildcards(role, [statement.to_statement_json()], why)

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
                conditions={"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": self.cluster_name}},
                resources=[groups],
            ),
            "An ARN of a group holds a random identifier. The condition names the groups of the platform.",
        )

    def _cluster_arn(self, scope: Construct) -> str:
        stack = cdk.Stack.of(scope)
        return stack.format_arn(service="ecs", resource="cluster", resource_name=self.cluster_name)

    def _arn(self, scope: Construct, kind: str) -> str:
        return cdk.Stack.of(scope).format_arn(
            service="ecs", resource=kind, resource_name=f"{self.cluster_name}/*"
        )
