"""Karpenter's permissions as IAM statements, because they follow Karpenter's template statement by statement.

Source: the six policies of Karpenter 1.14's getting-started template
(https://karpenter.sh/v1.14/reference/cloudformation/). Write permissions are limited to tags with the
cluster's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Statements = tuple[Mapping[str, Any], ...]

_NODEPOOL = "karpenter.sh/nodepool"
_NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass"
_CLUSTER_TAG = "eks:eks-cluster-name"
_REGION_TAG = "topology.kubernetes.io/region"


@dataclass(frozen=True)
class KarpenterScope:
    """Resources and tags that limit Karpenter's permissions."""

    partition: str
    region: str
    account: str
    """`partition`, `region`, `account`: Location of all resources."""
    cluster_name: str
    """A plain string without CDK tokens, because it becomes part of condition keys."""
    node_role_arn: str
    """ARN of the only role that Karpenter may pass to nodes."""
    queue_arn: str
    """ARN of the interruption queue."""

    @property
    def cluster_arn(self) -> str:
        """ARN of the cluster."""
        return f"arn:{self.partition}:eks:{self.region}:{self.account}:cluster/{self.cluster_name}"

    @property
    def instance_profiles_arn(self) -> str:
        """ARN pattern of all instance profiles, which conditions on tags limit further."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

    def ec2_arns(self, *kinds: str, account: str = "*") -> list[str]:
        """ARN patterns of all EC2 resources of these kinds, which conditions on tags limit further."""
        return [f"arn:{self.partition}:ec2:{self.region}:{account}:{kind}/*" for kind in kinds]

    def owned(self, tag_source: str) -> dict[str, str]:
        """Condition that a tag (``aws:RequestTag`` or ``aws:ResourceTag``) marks this cluster as owner."""
        return {f"{tag_source}/kubernetes.io/cluster/{self.cluster_name}": "owned"}


def karpenter_policies(scope: KarpenterScope) -> dict[str, Statements]:
    """Return the statements of each of Karpenter's policies by its name.

    scope: Resources and tags that limit the permissions.
    """
    return {
        "NodeLifecycle": _node_lifecycle(scope),
        "IamIntegration": _iam_integration(scope),
        "EksIntegration": (
            _allow("AllowAPIServerEndpointDiscovery", "eks:DescribeCluster", scope.cluster_arn),
        ),
        "Interruption": (
            _allow(
                "AllowInterruptionQueueActions",
                ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                scope.queue_arn,
            ),
        ),
        "ZonalShift": (
            _allow(
                "AllowZonalShiftStatusReadOnly",
                "arc-zonal-shift:GetManagedResource",
                "*",
                {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": scope.cluster_arn}},
            ),
        ),
        "ResourceDiscovery": _resource_discovery(scope),
    }


def _node_lifecycle(scope: KarpenterScope) -> Statements:
    """Start, tag and terminate instances that have the cluster's tag."""
    launched = scope.ec2_arns(
        "fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request"
    )
    requested = {**scope.owned("aws:RequestTag"), f"aws:RequestTag/{_CLUSTER_TAG}": scope.cluster_name}
    existing = {
        "StringEquals": scope.owned("aws:ResourceTag"),
        "StringLike": {f"aws:ResourceTag/{_NODEPOOL}": "*"},
    }
    with_nodepool = {"StringLike": {f"aws:RequestTag/{_NODEPOOL}": "*"}}
    return (
        _allow(
            "AllowScopedEC2InstanceAccessActions",
            ["ec2:RunInstances", "ec2:CreateFleet"],
            [
                *scope.ec2_arns("image", "snapshot", account=""),
                *scope.ec2_arns("security-group", "subnet", "capacity-reservation", "placement-group"),
            ],
        ),
        _allow(
            "AllowScopedEC2LaunchTemplateAccessActions",
            ["ec2:RunInstances", "ec2:CreateFleet"],
            scope.ec2_arns("launch-template"),
            existing,
        ),
        _allow(
            "AllowScopedEC2InstanceActionsWithTags",
            ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"],
            launched,
            {"StringEquals": requested, **with_nodepool},
        ),
        _allow(
            "AllowScopedResourceCreationTagging",
            "ec2:CreateTags",
            launched,
            {
                "StringEquals": {
                    **requested,
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
                **with_nodepool,
            },
        ),
        _allow(
            "AllowScopedResourceTagging",
            "ec2:CreateTags",
            scope.ec2_arns("instance"),
            {
                **existing,
                "StringEqualsIfExists": {f"aws:RequestTag/{_CLUSTER_TAG}": scope.cluster_name},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": [_CLUSTER_TAG, "karpenter.sh/nodeclaim", "Name"]
                },
            },
        ),
        _allow(
            "AllowScopedDeletion",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            scope.ec2_arns("instance", "launch-template"),
            existing,
        ),
    )


def _iam_integration(scope: KarpenterScope) -> Statements:
    """Create instance profiles with the node role."""
    profiles = scope.instance_profiles_arn
    resource_region = {f"aws:ResourceTag/{_REGION_TAG}": scope.region}
    requested = {
        **scope.owned("aws:RequestTag"),
        f"aws:RequestTag/{_CLUSTER_TAG}": scope.cluster_name,
        f"aws:RequestTag/{_REGION_TAG}": scope.region,
    }
    existing = {**scope.owned("aws:ResourceTag"), **resource_region}
    return (
        _allow(
            "AllowPassingInstanceRole",
            "iam:PassRole",
            scope.node_role_arn,
            {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
        ),
        _allow(
            "AllowScopedInstanceProfileCreationActions",
            "iam:CreateInstanceProfile",
            profiles,
            {"StringEquals": requested, "StringLike": {f"aws:RequestTag/{_NODE_CLASS}": "*"}},
        ),
        _allow(
            "AllowScopedInstanceProfileTagActions",
            "iam:TagInstanceProfile",
            profiles,
            {
                "StringEquals": {**existing, **requested},
                "StringLike": {f"aws:ResourceTag/{_NODE_CLASS}": "*", f"aws:RequestTag/{_NODE_CLASS}": "*"},
            },
        ),
        _allow(
            "AllowScopedInstanceProfileActions",
            [
                "iam:AddRoleToInstanceProfile",
                "iam:RemoveRoleFromInstanceProfile",
                "iam:DeleteInstanceProfile",
            ],
            profiles,
            {"StringEquals": existing, "StringLike": {f"aws:ResourceTag/{_NODE_CLASS}": "*"}},
        ),
    )


def _resource_discovery(scope: KarpenterScope) -> Statements:
    """Read instance types, their offerings and their prices."""
    reads = (
        "CapacityReservations",
        "Images",
        "Instances",
        "InstanceStatus",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "LaunchTemplates",
        "PlacementGroups",
        "SecurityGroups",
        "SpotPriceHistory",
        "Subnets",
    )
    parameters = f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*"
    return (
        _allow(
            "AllowRegionalReadActions",
            [f"ec2:Describe{read}" for read in reads],
            "*",
            {"StringEquals": {"aws:RequestedRegion": scope.region}},
        ),
        _allow("AllowSSMReadActions", "ssm:GetParameter", parameters),
        _allow("AllowPricingReadActions", "pricing:GetProducts", "*"),
        _allow("AllowUnscopedInstanceProfileListAction", "iam:ListInstanceProfiles", "*"),
        _allow("AllowInstanceProfileReadActions", "iam:GetInstanceProfile", scope.instance_profiles_arn),
    )


def _allow(
    sid: str,
    actions: str | list[str],
    resources: str | list[str],
    conditions: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """Return one statement."""
    statement = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}
    return statement | {"Condition": conditions} if conditions else statement
