"""AWS permissions of Karpenter and of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.eks.system_nodegroup import NodeRole
from inference_constructs.findings import acknowledge, acknowledge_wildcards
from inference_constructs.policy_statements import policy_document

# Karpenter's permissions as IAM statements, because they follow Karpenter's template statement by statement.
#
# Source: the six policies of Karpenter 1.14's getting-started template
# (https://karpenter.sh/v1.14/reference/cloudformation/). Write permissions are limited to tags with the
# cluster's name.

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
    reboots: bool = False
    """Whether it may reboot instances."""

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
        # aws/karpenter-provider-aws v1.15.1, charts/karpenter/values.yaml: rebootForRepair needs it.
        *(
            [_allow("AllowScopedReboot", "ec2:RebootInstances", scope.ec2_arns("instance"), existing)]
            if scope.reboots
            else []
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


#: EventBridge source and detail type by construct ID, for Karpenter's interruption controller
#: (https://karpenter.sh/v1.14/concepts/disruption/#interruption).
_EVENTS = {
    "ScheduledChange": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "InstanceStateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservationInterruption": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
}
_RETENTION_SECONDS = 300


class InterruptionQueue(sqs.Queue):
    """A queue of warnings about nodes. Karpenter reads it and drains the nodes in time."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.seconds(_RETENTION_SECONDS),
        )
        rules = [self._rule(name, source, kind) for name, (source, kind) in _EVENTS.items()]
        self.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sqs:SendMessage"],
                conditions={"ArnEquals": {"aws:SourceArn": [rule.attr_arn for rule in rules]}},
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                resources=[self.queue_arn],
            )
        )
        acknowledge(
            self,
            {"SQS3": "A warning is useless after five minutes, so a dead-letter queue has no purpose."},
        )

    def _rule(self, name: str, source: str, detail_type: str) -> events.CfnRule:
        """Send one kind of event to the queue."""
        return events.CfnRule(
            self,
            name,
            event_pattern={"source": [source], "detail-type": [detail_type]},
            targets=[events.CfnRule.TargetProperty(arn=self.queue_arn, id="Queue")],
        )


NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"


class KarpenterIdentity(Construct):
    """Karpenter's role and interruption queue, and the role and cluster access of its nodes.

    Parameters
    ----------
    cluster_name
        A plain string without CDK tokens, because it becomes part of IAM condition keys.
    reboots
        Whether Karpenter may reboot its instances, for its feature gate RebootForRepair.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster_name: str, reboots: bool = False
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.node_role = NodeRole(self, "NodeRole")
        self.queue = InterruptionQueue(self, "Queue")
        policy_scope = KarpenterScope(
            partition=stack.partition,
            region=stack.region,
            account=stack.account,
            cluster_name=cluster_name,
            node_role_arn=self.node_role.attr_arn,
            queue_arn=self.queue.queue_arn,
            reboots=reboots,
        )
        documents = karpenter_policies(policy_scope)
        policies = [
            iam.CfnManagedPolicy(self, f"{name}Policy", policy_document=policy_document(statements))
            for name, statements in documents.items()
        ]
        self.controller = PodIdentity(
            self,
            "Controller",
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_accounts=[SERVICE_ACCOUNT],
            managed_policy_arns=[policy.ref for policy in policies],
        )
        # Without this access entry nodes start but never join the cluster.
        eks.CfnAccessEntry(
            self, "Nodes", cluster_name=cluster_name, principal_arn=self.node_role.attr_arn, type="EC2_LINUX"
        )
        acknowledge_wildcards(
            self,
            chain.from_iterable(documents.values()),
            "Nodes are not known at deployment. Write permissions are limited to the cluster's tags, read "
            "permissions to the region, as in Karpenter's own template.",
        )
