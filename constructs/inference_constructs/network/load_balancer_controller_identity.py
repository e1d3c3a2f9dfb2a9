"""Permissions of the AWS Load Balancer Controller: it may only register pods with target groups."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from inference_catalog.tags import PLATFORM_TAG
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.policy_statements import Statement

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "aws-load-balancer-controller"

#: Read actions of the controller's own policy for TargetGroupBindings. None of them has a resource type
#: (https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/v3.5.0/docs/install/iam_policy.json).
_READS = [
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "elasticloadbalancing:DescribeTargetGroupAttributes",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
]


class LoadBalancerControllerIdentity(PodIdentity):
    """The controller's role. It excludes load balancers, because CloudFormation manages them.

    Parameters
    ----------
    cluster_name
        Cluster of the controller. Its tag also limits the target groups.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster_name: str) -> None:
        statements = _statements(cdk.Stack.of(scope), cluster_name)
        super().__init__(
            scope,
            construct_id,
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_accounts=[SERVICE_ACCOUNT],
            statements=statements,
        )
        acknowledge_wildcards(
            self,
            statements,
            "Describe actions have no resource types. Target groups are added with models and limited by the "
            "platform's tag.",
        )


def _statements(stack: cdk.Stack, cluster_name: str) -> list[Statement]:
    """Return permissions to read in the region, and to register with target groups of the platform."""
    groups = f"arn:{stack.partition}:elasticloadbalancing:{stack.region}:{stack.account}:targetgroup/*"
    return [
        {
            "Sid": "Read",
            "Effect": "Allow",
            "Action": _READS,
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": stack.region}},
        },
        {
            "Sid": "RegisterPods",
            "Effect": "Allow",
            "Action": ["elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:RegisterTargets"],
            "Resource": groups,
            "Condition": {"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": cluster_name}},
        },
    ]
