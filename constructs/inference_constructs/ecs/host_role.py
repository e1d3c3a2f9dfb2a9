"""The IAM role of the hosts of an Auto Scaling group."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.findings import acknowledge_managed_policies, acknowledge_wildcards, managed_policy
from inference_constructs.policy_statements import SESSIONS, Statement

_PULLS = "AmazonEC2ContainerRegistryPullOnly"


class HostRole(iam.Role):
    """A role with which a host joins one cluster, pulls images and accepts sessions.

    AWS's managed policy AmazonEC2ContainerServiceforEC2Role would also let a host join and change every other
    cluster and write every log of the account. Tasks have roles of their own, and their logs are written with
    their execution role (``ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE`` in `host_user_data`).

    Parameters
    ----------
    cluster_name
        Name of the cluster.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster_name: str) -> None:
        stack = cdk.Stack.of(scope)
        statements = _statements(stack, cluster_name)
        super().__init__(
            scope,
            construct_id,
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            inline_policies={
                "Host": iam.PolicyDocument(
                    statements=[iam.PolicyStatement.from_json(dict(each)) for each in statements]
                )
            },
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_PULLS)],
        )
        acknowledge_wildcards(
            self,
            statements,
            "A host learns its own ID when it joins, so the cluster limits what it may do. The other actions "
            "know no resources.",
        )
        acknowledge_managed_policies(
            self, [managed_policy(_PULLS)], "AWS maintains this policy with what a pull needs."
        )


def _statements(stack: cdk.Stack, cluster_name: str) -> list[Statement]:
    """Return what the ECS agent and the agent of Session Manager need.

    Source: the resources and condition keys of each action (Service Authorization Reference, Amazon Elastic
    Container Service, https://docs.aws.amazon.com/service-authorization/latest/reference/), and the actions
    of the agent (Amazon ECS Developer Guide, "Amazon ECS container instance IAM role").
    """
    ecs = f"arn:{stack.partition}:ecs:{stack.region}:{stack.account}"
    cluster = f"{ecs}:cluster/{cluster_name}"
    return [
        {
            "Sid": "JoinCluster",
            "Effect": "Allow",
            "Action": [
                "ecs:DeregisterContainerInstance",
                "ecs:RegisterContainerInstance",
                "ecs:SubmitAttachmentStateChanges",
                "ecs:SubmitContainerStateChange",
                "ecs:SubmitTaskStateChange",
            ],
            "Resource": cluster,
        },
        {
            "Sid": "FollowCluster",
            "Effect": "Allow",
            "Action": ["ecs:Poll", "ecs:StartTelemetrySession", "ecs:UpdateContainerInstancesState"],
            "Resource": f"{ecs}:container-instance/{cluster_name}/*",
            "Condition": {"ArnEquals": {"ecs:cluster": cluster}},
        },
        {"Sid": "FindCluster", "Effect": "Allow", "Action": "ecs:DiscoverPollEndpoint", "Resource": "*"},
        {"Sid": "Sessions", **SESSIONS},
    ]
